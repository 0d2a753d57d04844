package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// This file is about what goes wrong between an editor and a session, by mischance or on purpose.

// A change in an editor leaves the file as it was to the last bit, whatever it is called.
func TestBufferedFileIsNotTouched(t *testing.T) {
	s, e := edited(t)
	file := s.root + "/real/file"
	put(t, file, "on the disk")
	link(t, "real/file", s.root+"/soft")
	link(t, "real", s.root+"/dir")
	e.Type(file, "in the editor")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"real/file", "soft", "dir/file", file, "real/../dir//file"} {
		w := change(t, s.view(), name, "changed by "+name)
		if got := e.Text(file); got != "changed by "+name || w.InEditor == "" || w.Created || w.Same || w.Path.Real != file {
			t.Errorf("by %s: the editor holds %q, told %+v", name, got, w)
		}
	}
	if w := change(t, s.view(), "soft", e.Text(file)); !w.Same {
		t.Errorf("no change is told as %+v", w)
	}
	holds(t, file, "on the disk")
	alone(t, s.root+"/real", 1)
	after, err := os.Stat(file)
	if err != nil || !os.SameFile(before, after) || before.ModTime() != after.ModTime() || before.Mode() != after.Mode() ||
		workspace.StateOf(before).Ctime != workspace.StateOf(after).Ctime {
		t.Errorf("the file was %+v and is %+v (%v)", before, after, err)
	}
}

// The grant, the rules and the daemon's own places decide about the path before the editor's text is looked at.
func TestBufferOpensNoDoor(t *testing.T) {
	s, e := edited(t)
	mkdir(t, s.root+"/state")
	put(t, s.outside+"/file", "theirs")
	put(t, s.root+"/secret", "secret")
	link(t, s.outside+"/file", s.root+"/planted")
	link(t, "secret", s.root+"/to-secret")
	s.admit(t, workspace.Places{Hidden: []string{s.root + "/state"}})
	for _, name := range []string{s.root + "/state/key", s.root + "/secret", s.root + "/planted", s.root + "/to-secret", s.outside + "/file", s.outside + "/new"} {
		e.Type(name, "typed")
	}
	all := []workspace.Grantee{{Real: s.root, Tree: true}}
	v := s.ws.View(workspace.Grant{Dir: s.root, Reads: all, Writes: all, ReadDenied: func(real string) string {
		if real == s.root+"/secret" {
			return "A rule."
		}
		return ""
	}}, s.memory)
	for name, want := range map[string]string{
		"state/key": "hidden_path", "secret": "rule_denied", "to-secret": "rule_denied",
		"planted": "undeclared", s.outside + "/file": "undeclared", s.outside + "/new": "undeclared",
	} {
		refused(t, v, name, want)
		if _, err := v.Look(name); code(err) != want {
			t.Errorf("looking at %s: %v, want %s", name, err, want)
		}
		if _, err := v.Change(t.Context(), name, become("x")); code(err) != want {
			t.Errorf("changing %s: %v, want %s", name, err, want)
		}
		if _, err := v.Tree(name); code(err) != want {
			t.Errorf("the tree of %s: %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{s.root + "/state/key", s.root + "/secret", s.root + "/planted", s.outside + "/file", s.outside + "/new"} {
		if e.Text(name) != "typed" {
			t.Errorf("the editor's %s was changed", name)
		}
	}
}

// A buffer belongs to a name. By another name of the same file the disk is seen, and nothing is changed there.
func TestBufferOfHardLink(t *testing.T) {
	s, e := edited(t)
	put(t, s.root+"/a", "disk")
	if err := os.Link(s.root+"/a", s.root+"/b"); err != nil {
		t.Fatal(err)
	}
	e.Type(s.root+"/a", "typed")
	v := s.view()
	if c, err := v.Look("b"); err != nil || string(c.Data) != "disk" {
		t.Errorf("by its other name it holds %q (%v)", c.Data, err)
	}
	if c, err := v.Look("b"); err != nil || code(c.Current()) != "buffer_open" {
		t.Errorf("looked at by its other name: %v, %v", err, c.Current())
	}
	if _, err := v.Change(t.Context(), "b", become("x")); code(err) != "buffer_open" {
		t.Errorf("changed by its other name: %v", err)
	}
	if w := change(t, v, "a", "changed"); w.OtherNames != "" || e.Text(s.root+"/a") != "changed" {
		t.Errorf("by its own: %+v, the editor holds %q", w, e.Text(s.root+"/a"))
	}
	holds(t, s.root+"/a", "disk")
}

// A file that is opened or closed in the editor, or changed there, while a call works on it is not changed by that call.
func TestBufferMovesUnderAChange(t *testing.T) {
	for note, c := range map[string]struct {
		before, meanwhile func(*tooltest.Editor, string)
		text              string // that the editor has at the end
	}{
		"opened":        {nil, func(e *tooltest.Editor, file string) { e.Type(file, "typed") }, "typed"},
		"closed":        {func(e *tooltest.Editor, file string) { e.Type(file, "typed") }, (*tooltest.Editor).Close, ""},
		"typed":         {func(e *tooltest.Editor, file string) { e.Type(file, "typed") }, func(e *tooltest.Editor, file string) { e.Type(file, "more") }, "more"},
		"typed, untold": {func(e *tooltest.Editor, file string) { e.Type(file, "typed") }, func(e *tooltest.Editor, file string) { e.Hold(file, "more") }, "more"},
	} {
		for _, there := range []string{"there", "new"} {
			t.Run(note+" "+there, func(t *testing.T) {
				s, e := edited(t)
				file := s.root + "/file"
				if there == "there" {
					put(t, file, "disk")
				}
				if c.before != nil {
					c.before(e, file)
				}
				_, err := s.view().Change(t.Context(), "file", func(*workspace.Content) (workspace.Update, error) {
					c.meanwhile(e, file)
					return workspace.Update{Data: []byte("changed")}, nil
				})
				if code(err) != "stale_file" || e.Text(file) != c.text {
					t.Errorf("%v, the editor holds %q", err, e.Text(file))
				}
				if there == "there" {
					holds(t, file, "disk")
				} else if _, err := os.Lstat(file); err == nil {
					t.Error("the file was made")
				}
			})
		}
	}
}

// Who waited for a buffer that is closed meanwhile does not write the file.
func TestBufferClosedBeforeItsTurn(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, e := edited(t)
	file := s.root + "/file"
	put(t, file, "disk")
	e.Type(file, "typed")
	var waits sync.WaitGroup
	var late error
	_, err := s.view().Change(t.Context(), "file", func(*workspace.Content) (workspace.Update, error) {
		waits.Go(func() { _, late = s.view().Change(t.Context(), "file", become("late")) })
		e.Close(file)
		return workspace.Update{Data: []byte("changed")}, nil
	})
	waits.Wait()
	if code(err) != "stale_file" {
		t.Errorf("the first: %v", err)
	}
	// The second has waited, or begun after the closing: then the file is nobody's.
	if late == nil {
		holds(t, file, "late")
	} else if holds(t, file, "disk"); code(late) != "stale_file" {
		t.Errorf("the second: %v", late)
	}
}

// An editor that takes its time, or makes no sense, keeps nobody else waiting.
func TestEditorThatDoesNotAnswer(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newSite(t)
	put(t, s.root+"/file", "disk")
	asked := make(chan struct{})
	b := workspace.NewBuffers(func(ctx context.Context, _ workspace.BufferEdit) (int64, error) {
		close(asked)
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}, unbounded)
	if err := b.Changed(s.root+"/file", "file", 1, []byte("typed")); err != nil {
		t.Fatal(err)
	}
	other := s.ws.View(workspace.Grant{Dir: s.root, Reads: []workspace.Grantee{{Real: s.root, Tree: true}}, Writes: []workspace.Grantee{{Real: s.root, Tree: true}}}, workspace.NewReadState())
	s.memory.SetBuffers(b)
	ctx, stop := context.WithCancelCause(t.Context())
	var waits sync.WaitGroup
	var err error
	waits.Go(func() { _, err = s.view().Change(ctx, "file", become("x")) })
	<-asked
	change(t, other, "file", "another session's")
	enough := errors.New("enough")
	stop(enough)
	if waits.Wait(); !errors.Is(err, enough) {
		t.Errorf("%v, want what stopped the call", err)
	}
	if c, err := s.view().Look("file"); err != nil || string(c.Data) != "typed" {
		t.Errorf("the buffer is %q (%v)", c.Data, err)
	}
}

// unbounded agrees to any number of bytes.
func unbounded(int64) error { return nil }

func TestEditorWithoutVersions(t *testing.T) {
	for _, version := range []int64{-1, 0, 4, 5} {
		s := newSite(t)
		b := workspace.NewBuffers(func(context.Context, workspace.BufferEdit) (int64, error) { return version, nil }, unbounded)
		if err := b.Changed(s.root+"/file", "file", 5, []byte("typed")); err != nil {
			t.Fatal(err)
		}
		s.memory.SetBuffers(b)
		if _, err := s.view().Change(t.Context(), "file", become("x")); code(err) != "editor_failed" {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// An editor that speaks of its change before it answers, and knows better what has become of it, is believed.
func TestEditorThatSpeaksFirst(t *testing.T) {
	for _, becomes := range []string{"changed", "formatted"} {
		s := newSite(t)
		file := s.root + "/file"
		var b *workspace.Buffers
		b = workspace.NewBuffers(func(_ context.Context, c workspace.BufferEdit) (int64, error) {
			return c.Version + 2, b.Changed(c.Real, c.Path, c.Version+2, []byte(becomes))
		}, unbounded)
		if err := b.Changed(file, file, 1, []byte("typed")); err != nil {
			t.Fatal(err)
		}
		s.memory.SetBuffers(b)
		readWhole(s, file)
		changeRead(t, s, file, "changed")
		if got := readWhole(s, file); got != becomes {
			t.Errorf("the session sees %q, the editor has %q", got, becomes)
		}
		if err := b.Changed(file, file, 3, []byte("other")); code(err) != "stale_buffer" {
			t.Errorf("the same version with another text: %v", err)
		}
	}
}

// A file has one buffer, by whatever names an editor has opened it.
func TestBufferOfTwoNames(t *testing.T) {
	s, e := edited(t)
	file := s.root + "/file"
	e.Type(file, "typed")
	if err := e.Buffers.Changed(file, s.root+"/link", 9, []byte("other")); code(err) != "buffer_open" {
		t.Errorf("by another name: %v", err)
	}
	if err := e.Buffers.Changed(file, s.root+"/link", 9, []byte("typed")); err != nil {
		t.Errorf("by another name, with the same text: %v", err)
	}
	if got := readWhole(s, file); got != "typed" {
		t.Errorf("the session sees %q", got)
	}
	if e.Type(file, "more"); e.Text(file) != readWhole(s, file) {
		t.Error("its own name is not believed any more")
	}
}

func TestBufferBounds(t *testing.T) {
	s, e := edited(t)
	b := e.Buffers
	put(t, s.root+"/file", "disk")
	large := bytes.Repeat([]byte("x"), workspace.MaxBuffer+1)
	says := func(name string, version int64, size int, want string) {
		t.Helper()
		if err := b.Changed(s.root+"/"+name, name, version, large[:size]); code(err) != want {
			t.Errorf("%s with %d bytes: %v, want %q", name, size, err, want)
		}
	}
	says("file", 1, workspace.MaxBuffer+1, "buffer_too_large")
	// What the editor has is not known, and so neither its old text nor the disk may pass for it.
	if _, err := s.view().Look("file"); code(err) != "buffer_too_large" || !strings.Contains(err.Error(), s.root+"/file is open in an editor") {
		t.Errorf("looked at: %v", err)
	}
	if _, err := s.view().Open("file"); code(err) != "buffer_too_large" {
		t.Errorf("opened: %v", err)
	}
	if _, err := s.view().Change(t.Context(), "file", become("x")); code(err) != "buffer_too_large" {
		t.Errorf("changed: %v", err)
	}
	if list := b.Unsaved(); len(list) != 1 || code(list[0].Err) != "buffer_too_large" {
		t.Errorf("unsaved: %+v", list)
	}
	says("file", 1, workspace.MaxBuffer, "")
	if _, err := s.view().Change(t.Context(), "file", become(string(large))); code(err) != "file_too_large" {
		t.Errorf("made too large: %v", err)
	}
	says("lost", 1, workspace.MaxBuffer+1, "buffer_too_large") // takes no room
	for i := range 3 {
		says(fmt.Sprint(i), 1, workspace.MaxBuffer, "")
	}
	says("more", 1, 1, "buffer_too_large")
	says("0", 2, workspace.MaxBuffer-1, "")
	says("more", 2, 1, "")
	b.Closed(s.root + "/1")
	says("2", 2, workspace.MaxBuffer, "")
	for _, name := range []string{"file", "more", "lost", "0", "2"} {
		b.Closed(s.root + "/" + name)
	}
	for i := range 4096 {
		says(fmt.Sprint("n", i), 1, 0, "")
	}
	says("one too many", 1, 0, "too_many_buffers")
	says("n7", 2, 1, "")
}

// Putting files back does not reach behind an editor that has something to lose.
func TestBufferIsNotRestored(t *testing.T) {
	s, e := edited(t)
	kept := store{}
	file := s.root + "/file"
	put(t, file, "before")
	before := kept.snapshot(t, s.view(), file)
	change(t, s.view(), "file", "after")
	puts := []workspace.Put{{Real: file, Now: kept.snapshot(t, s.view(), file), Want: before}}
	v := s.ws.View(workspace.Grant{Dir: s.root, Writes: []workspace.Grantee{{Real: file}}}, s.memory)
	e.Type(file, "typed")
	if _, err := v.Restore(t.Context(), puts, kept.content); code(err) != "buffer_open" {
		t.Errorf("with unsaved text: %v", err)
	}
	if err := os.Link(file, s.root+"/other"); err != nil {
		t.Fatal(err)
	}
	other := s.ws.View(workspace.Grant{Dir: s.root, Writes: []workspace.Grantee{{Real: s.root + "/other"}}}, s.memory)
	into := before
	named := []workspace.Put{{Real: s.root + "/other", Now: kept.snapshot(t, s.view(), s.root+"/other"), Want: before, Into: &into}}
	if _, err := other.Restore(t.Context(), named, kept.content); code(err) != "buffer_open" {
		t.Errorf("by another name: %v", err)
	}
	if err := os.Remove(s.root + "/other"); err != nil {
		t.Fatal(err)
	}
	puts[0].Now = kept.snapshot(t, s.view(), file)
	holds(t, file, "after")
	e.Type(file, "after")
	if _, err := v.Restore(t.Context(), puts, kept.content); err != nil {
		t.Errorf("with saved text: %v", err)
	}
	holds(t, file, "before")
	if list := e.Buffers.Conflicts(); len(list) != 1 || list[0].Unsaved {
		t.Errorf("conflicts %+v", list)
	}
}

// Of a file that an editor holds open, what a session knows is compared with the text there.
func TestMemoryAsksTheEditor(t *testing.T) {
	s, e := edited(t)
	file := s.root + "/file"
	put(t, file, "disk")
	e.Type(file, "typed")
	readWhole(s, file)
	if _, changed := s.memory.Now(file); changed {
		t.Error("the file has changed, since the disk has another text than the editor")
	}
	put(t, file, "another")
	if _, changed := s.memory.Now(file); changed {
		t.Error("the file has changed, though not in the editor")
	}
	e.Type(file, "more")
	if _, changed := s.memory.Now(file); !changed {
		t.Error("the file has not changed, though in the editor")
	}
}
