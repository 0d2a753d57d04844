//go:build !no_lsp

// A real language server behind the daemon, from the client's side: what LSP answers, and what an edit is told. How the
// server is killed is in kill_servers_linux_test.go.

package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/lsp"
)

// What stands in main.go of a module, and what an edit makes of it.
const (
	soundGo  = "package m\n\n// Greet greets.\nfunc Greet() string { return \"hello\" }\n"
	sound    = `return \"hello\"`
	mistyped = `return 7`
	// mistake is what gopls has to say of it, after the path.
	mistake = ":4:30: error: cannot use 7"
)

// gopls is the real one, as make builds it.
func gopls(t *testing.T) string {
	t.Helper()
	built, err := filepath.Abs("../.bin/gopls")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(built); err == nil {
		return built
	}
	if built, err = exec.LookPath("gopls"); err != nil {
		const lacks = `this test needs gopls: run "make servers"`
		if os.Getenv("TOOLD_CI") != "" {
			t.Fatal(lacks)
		}
		t.Skip(lacks)
	}
	return built
}

// A goHouse is a daemon whose root is a Go module with one file, and whose settings name gopls.
type goHouse struct {
	*house
	server, file string
}

func module(t *testing.T) *goHouse {
	t.Helper()
	h := &goHouse{house: prepare(t, lsp.Tool()), server: gopls(t)}
	h.house.file("go.mod", "module example.com/m\n\ngo 1.24\n")
	h.file = h.house.file("main.go", soundGo)
	h.say("")
	return h
}

// say writes the settings, with more beside gopls.
func (h *goHouse) say(more string) {
	h.t.Helper()
	h.configure(fmt.Sprintf(`{"lsp": {"go": {"command": [%q]}}, "env": {%q: %q}%s}`, h.server, servedFor, h.socket, more))
}

// A coder is a client that works on the file.
type coder struct {
	*conversation
	h     *goHouse
	calls int
}

// does calls a tool that succeeds, and gives the text of its result.
func (c *coder) does(name, more string) string {
	c.t.Helper()
	c.calls++
	id := fmt.Sprint("call", c.calls)
	c.use(id, name, fmt.Sprintf(`{"file_path": %q%s}`, c.h.file, more))
	var text []string
	for _, block := range c.until(id + " OK").GetToolResult().GetContent() {
		text = append(text, block.GetText())
	}
	return strings.Join(text, "\n")
}

// edit replaces once, and gives what the result says of new diagnostics.
func (c *coder) edit(before, after string) string {
	c.t.Helper()
	text := c.does("Edit", fmt.Sprintf(`, "old_string": "%s", "new_string": "%s"`, before, after))
	_, told, _ := strings.Cut(text, "New diagnostics after this edit:\n")
	return told
}

// diagnostics asks for those of the file.
func (c *coder) diagnostics() string {
	c.t.Helper()
	return c.does("LSP", `, "operation": "diagnostics"`)
}

// codes starts the daemon and a client that has read the file and asked about it, so that gopls runs.
func (h *goHouse) codes() *coder {
	h.t.Helper()
	h.start()
	c := &coder{conversation: h.join("s", free()), h: h}
	c.does("Read", "")
	if text := c.diagnostics(); strings.Contains(text, h.file+":") {
		h.t.Fatalf("of a sound file it says %q", text)
	}
	return c
}

// breaks makes a type error and fixes it, until the result tells of it: it has a second for that, which a busy machine may
// need for something else.
func (c *coder) breaks() (told string) {
	c.t.Helper()
	const attempts = 20
	for range attempts {
		told = c.edit(sound, mistyped)
		if fixed := c.edit(mistyped, sound); fixed != "" {
			c.t.Fatalf("an edit that fixes is told %q", fixed)
		}
		if told != "" {
			return told
		}
	}
	return told
}

// TestEditIsTold: an edit's result has what it breaks, in the daemon's usual sandbox, and nothing when it fixes or when
// settings say so.
func TestEditIsTold(t *testing.T) {
	t.Parallel()
	h := module(t)
	c := h.codes()
	if told := c.breaks(); !strings.HasPrefix(told, h.file+mistake) || strings.Contains(told, "\n") {
		t.Errorf("an edit that brings an error is told %q", told)
	}
	h.say(`, "diagnosticsAfterEdit": false`)
	if told := c.edit(sound, mistyped); told != "" {
		t.Errorf("without diagnosticsAfterEdit it is told %q", told)
	}
	if text := c.diagnostics(); !strings.Contains(text, mistake) {
		t.Errorf("LSP says %q", text)
	}
	h.say("")
	if told := c.edit(mistyped, sound); told != "" {
		t.Errorf("an edit that fixes is told %q", told)
	}
}

// TestBufferDiagnosed: what an editor has not saved is what LSP sees, and what an edit of it is told about.
func TestBufferDiagnosed(t *testing.T) {
	t.Parallel()
	h := module(t)
	h.start()
	c := &coder{conversation: h.edits("s", tooldv1.Role_ROLE_MAIN, free()), h: h}
	if text := c.diagnostics(); strings.Contains(text, h.file+":") {
		t.Errorf("on the disk: %q", text)
	}
	c.buffer(h.file, 1, strings.Replace(soundGo, `"hello"`, "7", 1))
	if text := c.diagnostics(); !strings.Contains(text, h.file+mistake) {
		t.Errorf("in the buffer: %q", text)
	}
	c.say(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferClosed{BufferClosed: &tooldv1.BufferClosed{Path: h.file}}})
	if text := c.diagnostics(); strings.Contains(text, h.file+":") {
		t.Errorf("once it is closed: %q", text)
	}
}
