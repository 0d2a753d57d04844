// The dependency order: a call waits for the earlier ones that it conflicts with, by what it touches on the disk, and for
// no others.

package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// dependent is a session in the dependency order whose calls ask nobody, and abort nobody.
func dependent(more ...*tooldv1.Options) *tooldv1.Options {
	return free(append([]*tooldv1.Options{{
		Ordering: tooldv1.Ordering_ORDERING_DEPENDENCY.Enum(), SiblingAbort: tooldv1.SiblingAbort_SIBLING_ABORT_NONE.Enum(),
	}}, more...)...)
}

// An ordering is a session with gates that touch files.
type ordering struct {
	*conversation
	*gate
	h *house
}

func newOrdering(t *testing.T, options *tooldv1.Options) *ordering {
	t.Helper()
	g := newGate(tools.Spec{Name: "Gate", OnInterrupt: tools.Stop, OnFailure: tools.AbortSiblings})
	h := serve(t, g)
	for _, name := range []string{"a", "b", "d/a", "d/b"} {
		h.file(name, name+"\n")
	}
	return &ordering{h.join("s", options), g, h}
}

// reads and edits send a gate, and return when it is accepted, with what it waits for.
func (o *ordering) reads(name, path string) []string { return o.sends(name, "reads", path) }
func (o *ordering) edits(name, path string) []string { return o.sends(name, "edits", path) }
func (o *ordering) makes(name string) []string       { return o.sends(name, "name", name) }

func (o *ordering) sends(name, how, path string) []string {
	o.t.Helper()
	input := fmt.Sprintf(`{"name":%q,%q:%q}`, name, how, path)
	if how == "name" {
		input = fmt.Sprintf(`{"name":%q,"writes":true}`, name)
	}
	o.use(name, "Gate", input)
	return o.until(name + " accepted").GetAccepted().GetWaitsFor()
}

// through lets calls that have begun go on to their end.
func (o *ordering) through(names ...string) {
	o.t.Helper()
	for _, name := range names {
		o.await(o.t, name)
		o.open(name)
		o.until(name + " OK")
	}
}

// waits fails if one of the calls has begun.
func (o *ordering) waits(names ...string) {
	o.t.Helper()
	for _, name := range names {
		if o.began(name) {
			o.t.Errorf("%s has begun", name)
		}
	}
}

// heard returns the first event whose story begins so, also if it has come before.
func (c *conversation) heard(told string) *tooldv1.ExecuteResponse {
	c.t.Helper()
	for _, event := range c.events {
		if strings.HasPrefix(tell(event), told) {
			return event
		}
	}
	return c.until(told)
}

func TestDependencyOrder(t *testing.T) {
	o := newOrdering(t, dependent())
	none := []string(nil)
	want(t, o.edits("ea", "a"), none)
	want(t, o.edits("eb", "b"), none)
	want(t, o.reads("rd", "d"), none)
	want(t, o.reads("ra", "a"), []string{"ea"})
	want(t, o.edits("ea2", "a"), []string{"ra"}) // which waits for ea
	want(t, o.edits("new", "d/new/x"), []string{"rd"})
	o.await(t, "ea", "eb", "rd")
	o.through("eb")
	o.waits("ra", "ea2", "new")
	o.through("ea")
	o.await(t, "ra")
	o.waits("ea2")
	o.through("rd", "new", "ra", "ea2")
	o.makes("m") // may name those whose results have only just come
	want(t, o.reads("rb", "b"), []string{"m"})
	o.await(t, "m")
	o.waits("rb")
	o.through("m", "rb")
	o.endTurn()
	o.until("turn 1 ended 8/7")
}

// TestDependencyByFile: it counts where a name leads, and which file that is.
func TestDependencyByFile(t *testing.T) {
	o := newOrdering(t, dependent())
	for _, err := range []error{
		os.Symlink("a", o.h.root+"/link"), os.Symlink("d", o.h.root+"/dir"), os.Link(o.h.root+"/a", o.h.root+"/d/hard"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, test := range []struct{ edited, read string }{
		{"link", "a"},
		{"a", "link"},
		{"dir/a", "d/a"},
		{"d", "dir/b"},
		{"d/hard", "a"},
		{"a", "d"},
		{"dir/new", "d/new"},
		{"dir/x/y", "d/x"},
		{".gitignore", "d/a"},
	} {
		edit, read := fmt.Sprint("edit", i), fmt.Sprint("read", i)
		want(t, append(o.edits(edit, test.edited), o.reads(read, test.read)...), []string{edit})
		o.await(t, edit)
		o.waits(read)
		o.through(edit, read)
		o.endTurn()
		o.until("turn")
	}
}

// TestDependencyLooksAgain: a call in front may change where names lead.
func TestDependencyLooksAgain(t *testing.T) {
	o := newOrdering(t, dependent())
	link := filepath.Join(o.h.root, "link")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	o.makes("m")
	want(t, o.edits("el", "link"), []string{"m"})
	want(t, o.reads("rb", "b"), []string{"m"})
	want(t, o.reads("ra", "a"), []string{"el"})
	o.await(t, "m")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", link); err != nil {
		t.Fatal(err)
	}
	o.through("m")
	o.await(t, "el", "ra")
	o.waits("rb")
	o.through("el", "rb", "ra")
}

// TestDependencyAborts: a failure aborts what came later, and what changes something has waited for it.
func TestDependencyAborts(t *testing.T) {
	o := newOrdering(t, free(&tooldv1.Options{Ordering: tooldv1.Ordering_ORDERING_DEPENDENCY.Enum()}))
	o.reads("before", "d")
	o.reads("fails", "b")
	want(t, o.edits("edit", "a"), []string{"fails", "before"})
	o.reads("after", "d")
	o.await(t, "before", "fails", "after")
	o.waits("edit")
	o.fail("fails")
	o.through("before")
	o.endTurn()
	o.until("turn ")
	want(t, outcomes(resultsOf(o.events)), map[string]string{"before": "OK", "fails": "ERROR gate_failed", "edit": "ABORTED aborted", "after": "ABORTED aborted"})
}

// TestDependencyOfRealCalls: a Bash call that reads a pipe runs beside an edit, and ends by what the test writes then.
func TestDependencyOfRealCalls(t *testing.T) {
	h := serve(t)
	path, pipe := h.file("a", "one\n"), filepath.Join(h.root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := h.join("s", dependent())
	c.use("cat", "Bash", `{"command":"cat pipe"}`)
	c.use("read", "Read", `{"file_path":"`+path+`"}`)
	c.use("edit", "Edit", `{"file_path":"`+path+`","old_string":"one","new_string":"two"}`)
	c.use("new", "Write", `{"file_path":"`+h.root+`/new","content":"new\n"}`)
	c.use("again", "Read", `{"file_path":"`+path+`"}`)
	c.use("todo", "TodoWrite", `{"todos":[{"content":"x","status":"pending","activeForm":"x"}]}`)
	c.use("make", "Bash", `{"command":"echo three >b; cat a"}`)
	for ended := 0; ended < 5; { // all but cat and make
		if c.until("").GetToolResult() != nil {
			ended++
		}
	}
	if err := os.WriteFile(pipe, []byte("through\n"), 0); err != nil {
		t.Fatal(err)
	}
	c.endTurn()
	c.until("turn 1 ended 7/")
	results := resultsOf(c.events)
	for id, text := range map[string]string{"cat": "through", "read": "one", "again": "two", "make": "two"} {
		if got := results[id].GetContent()[0].GetText(); !strings.Contains(got, text) {
			t.Errorf("%s: %q, want %q in it", id, got, text)
		}
	}
}

// TestUndoOfOverlappingCalls: what ran beside each other is undone one by one.
func TestUndoOfOverlappingCalls(t *testing.T) {
	h := serve(t)
	a, b := h.file("a", "a\n"), h.file("b", "b\n")
	c := h.join("s", &tooldv1.Options{Ordering: tooldv1.Ordering_ORDERING_DEPENDENCY.Enum()})
	for _, path := range []string{a, b} {
		c.use("read "+path, "Read", `{"file_path":"`+path+`"}`)
	}
	c.use("a", "Edit", `{"file_path":"`+a+`","old_string":"a","new_string":"A"}`)
	c.use("b", "Edit", `{"file_path":"`+b+`","old_string":"b","new_string":"B"}`)
	qa, qb := c.heard("a asks").GetQuestion(), c.heard("b asks").GetQuestion()
	c.reply(qb, allow)
	c.until("b OK") // while the other waits for its answer
	c.reply(qa, allow)
	c.until("a OK")
	c.endTurn()
	c.until("turn 1")
	holds(t, a, "A\n")
	holds(t, b, "B\n")
	for _, undone := range []struct{ id, path string }{{"b", b}, {"a", a}} {
		request := beforeCall("s", undone.id)
		request.Paths = []string{undone.path}
		h.restore(request)
		holds(t, undone.path, undone.id+"\n")
	}
	holds(t, b, "b\n")
}

// TestUpdatedInputInDependencyOrder: an answer may change what a call does to its file, but not name another: calls that
// came later may have read that one already.
func TestUpdatedInputInDependencyOrder(t *testing.T) {
	h := serve(t)
	c := h.join("s", &tooldv1.Options{Ordering: tooldv1.Ordering_ORDERING_DEPENDENCY.Enum()})
	other := h.file("other", "other\n")
	c.write(h, "a")
	c.write(h, "b")
	c.use("read", "Read", `{"file_path":"`+other+`"}`)
	c.until("read OK")
	qa, qb := c.heard("a asks").GetQuestion(), c.heard("b asks").GetQuestion()
	c.reply(qa, allow, func(a *tooldv1.Answer) {
		a.UpdatedInputJson = `{"file_path":"` + h.root + `/a.txt","content":"else\n"}`
	})
	c.reply(qb, allow, func(a *tooldv1.Answer) { a.UpdatedInputJson = `{"file_path":"` + other + `","content":"else\n"}` })
	c.endTurn()
	want(t, outcomes(c.results()), map[string]string{"a": "OK", "b": "DENIED widened_input"})
	holds(t, h.root+"/a.txt", "else\n")
	holds(t, other, "other\n")
}
