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
	{},                        // make install, start, call
	{`tool\.proto`},           // run
	{`is not trusted`},        // explain, settings, trust
	{`hello\.txt`, `Restore`}, // diff, undo, log
	{},                        // list
	{`"started"`},             // RunTool
	{`(?s)("OUTCOME_OK".*){2}`, `runs the tool calls`, `arch_test\.go`, `"turnEnded"`},  // Execute
	{`"sessionId": "notes"`, `"OUTCOME_OK"`, `input_schema`, `SANDBOX_TIER_F(AST|ULL)`}, // attach, ListTools, GetInfo
	{}, // stop
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
		if grpcurl || !strings.Contains(block.script, "grpcurl") {
			script.WriteString(block.script)
		}
	}
	output, err := readersShell(t, script.String())
	outputs := strings.Split(output, boundary)[1:] // what comes before the first is nothing
	if err != nil {
		t.Fatalf("the README's block\n\n%s\nended with %v and this output:\n%s", blocks[len(outputs)-1].script, err, outputs[len(outputs)-1])
	}
	for n, block := range blocks {
		t.Run(strconv.Itoa(n+1), func(t *testing.T) {
			if !grpcurl && strings.Contains(block.script, "grpcurl") {
				lacking(t, `grpcurl, which "make clients" builds`)
			}
			for _, pattern := range append(readmeShows[n], block.shown()) {
				if !regexp.MustCompile(pattern).MatchString(outputs[n]) {
					t.Errorf("the output of\n\n%s\ndoes not match %q:\n%s", block.script, pattern, outputs[n])
				}
			}
		})
	}
}

// A block is a block of shell of the README, with the output that is printed below it.
type block struct{ script, output string }

// readmeBlocks returns the README's blocks of shell.
func readmeBlocks(t *testing.T) []block {
	t.Helper()
	var blocks []block
	pattern := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?")
	for _, match := range pattern.FindAllStringSubmatch(document(t, "README.md"), -1) {
		blocks = append(blocks, block{script: match[1], output: match[2]})
	}
	if len(blocks) != len(readmeShows) {
		t.Fatalf("README.md has %d blocks of shell, and readmeShows says of %d what they should show", len(blocks), len(readmeShows))
	}
	return blocks
}

// shown returns a pattern of the output that the README prints: a line of three dots stands for any lines, three dots
// in a line for any text, and numbers, names of temporary folders and the folder of sockets are the reader's own.
func (b block) shown() string {
	pattern := regexp.QuoteMeta(b.output)
	for _, r := range [][2]string{
		{`(?m)^\\\.\\\.\\\.\n`, `(?:.*\n)*?`},
		{`\\\.\\\.\\\.`, `.*`},
		{`/tmp/tmp\\\.\w+`, `.*`},
		{`/run/user/1000`, `.*`},
		{`\d+`, `\d+`},
		{` ms +`, ` ms +`}, // a column that begins where the number before it lets it
	} {
		pattern = regexp.MustCompile(r[0]).ReplaceAllLiteralString(pattern, r[1])
	}
	return "(?m)^" + pattern
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
