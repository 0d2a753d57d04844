// The README's commands, run as they stand there. This file knows what a reader's machine is and what the commands
// should show; it does not know how any of them works.
package docs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// readmeShows is what the outputs of the README's blocks must hold, block by block: regular expressions, each of which
// must match.
var readmeShows = [][]string{
	{`denied · cannot_ask`, `(?m)^ +@@ `, `✗ Bash sleep 30 +aborted`, `(?m)^batch +0`, `nothing is left behind`, `running already`}, // make demo, make test
	{`listens on`, `README\.md`}, // make install, start, call
	{`module github.com/toold/toold`, `tool\.proto`, `service ToolService`},                    // run
	{`✓ allowed`, `runs git status \(only reads\)`, `No file sets anything`, `is not trusted`}, // explain, settings, trust
	{`\+hello`, `hello\.txt`, `Write\(`, `Restore`},                                            // diff, undo, log
	{`toold\.v1\.ToolService`, `grpc\.health\.v1\.Health`},                                     // list
	{`"started"`, `"OUTCOME_OK"`, `README\.md`},                                                // RunTool
	{`(?s)("OUTCOME_OK".*){2}`, `runs the tool calls`, `arch_test\.go`, `"turnEnded"`},         // Execute
	{`"sessionId": "notes"`, `"OUTCOME_OK"`, `input_schema`, `SANDBOX_TIER_F(AST|ULL)`},        // attach, ListTools, GetInfo
	{`has ended`}, // stop
}

// prelude makes the reader's machine: a command that fails ends the script, and "make test", which is what runs this,
// is not run once more inside itself.
const prelude = `set -eu -o pipefail
make() { if [ "$*" = test ]; then echo 'running already'; else command make "$@"; fi; }
trap 'toold stop --now >/dev/null 2>&1 || true' EXIT
`

// boundary separates the outputs of two blocks.
const boundary = "\x1e"

func TestReadmeCommands(t *testing.T) {
	blocks := readmeBlocks(t)
	grpcurl := have("grpcurl")
	var script strings.Builder
	script.WriteString(prelude)
	for _, block := range blocks {
		fmt.Fprintf(&script, "printf '%s'\n", boundary)
		if grpcurl || !strings.Contains(block, "grpcurl") {
			script.WriteString(block)
		}
	}
	output, err := readersShell(t, script.String())
	outputs := strings.Split(output, boundary)[1:] // what comes before the first is nothing
	if err != nil {
		t.Fatalf("the README's block\n\n%s\nended with %v and this output:\n%s", blocks[len(outputs)-1], err, outputs[len(outputs)-1])
	}
	for n, block := range blocks {
		t.Run(strconv.Itoa(n+1), func(t *testing.T) {
			if !grpcurl && strings.Contains(block, "grpcurl") {
				lacking(t, `grpcurl, which "make clients" builds`)
			}
			for _, pattern := range readmeShows[n] {
				if !regexp.MustCompile(pattern).MatchString(outputs[n]) {
					t.Errorf("the output of\n\n%s\ndoes not match %q:\n%s", block, pattern, outputs[n])
				}
			}
		})
	}
}

// readmeBlocks returns the README's blocks of shell.
func readmeBlocks(t *testing.T) []string {
	t.Helper()
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(document(t, "README.md"), -1) {
		blocks = append(blocks, match[1])
	}
	if len(blocks) != len(readmeShows) {
		t.Fatalf("README.md has %d blocks of shell, and readmeShows says of %d what they should show", len(blocks), len(readmeShows))
	}
	return blocks
}

// readersShell runs a script in the module's root as a reader would: with a home of its own and "make install" going
// to a folder on PATH. It gives both outputs as they came.
func readersShell(t *testing.T, script string) (string, error) {
	t.Helper()
	home, err := os.MkdirTemp("", "toold-readme") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	runtime := filepath.Join(home, "run")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR="+runtime, "XDG_STATE_HOME="+filepath.Join(home, "state"),
		"TMPDIR="+home, "GOBIN="+filepath.Join(home, "bin"), "PATH="+filepath.Join(home, "bin")+":"+binDir(t)+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
	}
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// binDir is where make puts the pinned tools.
func binDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".bin")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func have(program string) bool {
	if exists(filepath.Join(".bin", program)) {
		return true
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// lacking skips a test for want of something, or fails it where CI has promised that everything is there.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}
