// Package conformance_test holds the libraries of all languages against one list of cases, with the real daemon, and runs the
// programs that their documents show.
package conformance_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/clients/clienttest"
)

// debian is the interpreter whose packages the Python library works with.
const debian = "/usr/bin/python3"

// A home is a place of its own for a daemon: its socket, state and settings.
type home struct {
	t    *testing.T
	dir  string
	root string // of sessions: the directory in which programs run
	env  []string
}

// newHome makes a home in which nothing runs. A daemon that is started in it is stopped at the end of the test.
func newHome(t *testing.T) *home {
	dir, err := os.MkdirTemp("", "toold") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{t: t, dir: dir, root: filepath.Join(dir, "root")}
	h.env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TOOLD_") })
	for variable, name := range map[string]string{"HOME": "home", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "TMPDIR": "tmp", "PWD": "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		h.env = append(h.env, variable+"="+filepath.Join(dir, name))
	}
	h.env = append(h.env, "PATH="+filepath.Dir(built(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() { h.t = t; h.run(built(t), "stop", "--now") })
	return h
}

// write makes a file below the root.
func (h *home) write(name, content string) {
	if err := os.WriteFile(filepath.Join(h.root, name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) read(name string) string {
	content, err := os.ReadFile(filepath.Join(h.root, name))
	if err != nil {
		h.t.Error(err)
	}
	return string(content)
}

// command is a program of the home, in its root. It ends with the test.
func (h *home) command(program string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	h.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = 20 * time.Second // for what it has printed, on a busy machine
	cmd.Env, cmd.Dir = h.env, h.root
	return cmd
}

// run runs a program, and fails the test with what it printed if it fails. It returns what it has printed to its output.
func (h *home) run(program string, args ...string) string {
	h.t.Helper()
	return h.finish(h.command(program, args...))
}

// converse runs a program as finish does, and writes an answer to its input whenever it has printed a question.
func (h *home) converse(cmd *exec.Cmd, question, answer string) string {
	h.t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	stdout := &answering{input: input, question: question, answer: answer}
	cmd.Stdout = stdout
	return h.finish(cmd)
}

type answering struct {
	printed          bytes.Buffer
	input            io.Writer
	question, answer string
}

func (a *answering) Write(p []byte) (int, error) {
	a.printed.Write(p)
	if strings.HasSuffix(a.String(), a.question) {
		if _, err := io.WriteString(a.input, a.answer); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (a *answering) String() string { return a.printed.String() }

func (h *home) finish(cmd *exec.Cmd) string {
	h.t.Helper()
	if cmd.Stdout == nil {
		cmd.Stdout = &bytes.Buffer{}
	}
	var diagnosis bytes.Buffer
	cmd.Stderr = &diagnosis
	if err := cmd.Run(); err != nil {
		h.t.Errorf("%q: %v\n%s\n%s", cmd.Args, err, cmd.Stdout, &diagnosis)
	}
	return cmd.Stdout.(interface{ String() string }).String()
}

// A product is something that is built once for all tests, in a folder that TestMain removes.
type product struct {
	once sync.Once
	path string
	err  string
}

var workplace string // of products

func TestMain(m *testing.M) {
	driveIfAsked()
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		panic(err)
	}
	workplace = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// make builds a product with programs, one after the other, and returns its path below the workplace.
func (p *product) make(t *testing.T, path string, commands ...[]string) string {
	t.Helper()
	p.once.Do(func() {
		p.path = filepath.Join(workplace, path)
		for _, args := range commands {
			if output, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				p.err = strings.Join(args, " ") + ": " + err.Error() + "\n" + string(output)
				return
			}
		}
	})
	if p.err != "" {
		t.Fatal(p.err)
	}
	return p.path
}

var library product

var buildOnce = sync.OnceValue(func() error {
	bin := filepath.Join(workplace, "bin")
	return errors.Join(os.MkdirAll(bin, 0o700), clienttest.Build(filepath.Join(bin, "toold")))
})

// built returns the path of toold.
func built(t *testing.T) string {
	t.Helper()
	if err := buildOnce(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(workplace, "bin/toold")
}

// node returns node, and the folder in which programs find the TypeScript library, compiled, and its packages.
func node(t *testing.T) (program, dir string) {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		clienttest.Lacking(t, "Node 20 or newer")
	}
	packages, err := filepath.Abs("../typescript/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"typescript", "@anthropic-ai/sdk", "openai", "ai", "@openai/agents", "@ai-sdk/anthropic"} {
		if _, err := os.Stat(filepath.Join(packages, name)); err != nil {
			clienttest.Lacking(t, `the packages of clients/typescript, which "make clients" installs`)
		}
	}
	dir = filepath.Join(workplace, "typescript")
	return program, library.make(t, "typescript",
		[]string{"mkdir", dir}, []string{"ln", "-s", packages, dir + "/node_modules"}, []string{"cp", "../typescript/package.json", dir},
		[]string{program, packages + "/typescript/bin/tsc", "-p", "../typescript", "--outDir", dir + "/dist"})
}

// python returns the interpreter, and the environment in which programs find the library and the imitated SDKs.
func python(t *testing.T) (program, path string) {
	t.Helper()
	if exec.Command(debian, "-c", "import grpc.aio, google.protobuf").Run() != nil {
		clienttest.Lacking(t, "Debian's python3-grpcio and python3-protobuf")
	}
	source, err := filepath.Abs("../python/src")
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := filepath.Abs("testdata/sdk")
	if err != nil {
		t.Fatal(err)
	}
	return debian, source + string(os.PathListSeparator) + sdk
}
