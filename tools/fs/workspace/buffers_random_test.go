package workspace_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
)

// Whatever an editor, a session and other programs do one after the other, a session sees what the editor has said last,
// changes only what it has read, and leaves the disk alone.
func TestBuffersAgainstStrings(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s, e := edited(t)
		m := &strung{site: s, editor: e, file: s.root + "/file", disk: "0"}
		put(t, m.file, m.disk)
		text := rapid.SampledFrom([]string{"0", "1", "2", "other"})
		r.Repeat(map[string]func(*rapid.T){
			"type": func(r *rapid.T) { m.hold(text.Draw(r, "typed")); m.tell() },
			"hold": func(r *rapid.T) { m.hold(text.Draw(r, "typed")) },
			"tell": func(*rapid.T) { m.tell() },
			"save": func(*rapid.T) {
				if m.open {
					e.Save(m.file)
					m.disk = m.held
				}
			},
			"close": func(*rapid.T) { e.Close(m.file); m.open, m.untold = false, false },
			"disk":  func(r *rapid.T) { m.disk = text.Draw(r, "written"); put(t, m.file, m.disk) },
			"read": func(r *rapid.T) {
				if m.read = m.sees(); readWhole(s, m.file) != m.read {
					r.Errorf("read something else than %q", m.read)
				}
			},
			"edit": func(r *rapid.T) {
				next := text.Draw(r, "new")
				if want, got := m.edit(next), changeRead(t, s, m.file, next); got != want {
					r.Errorf("the change came to %q, want %q", got, want)
				}
			},
			"": m.check,
		})
	})
}

// strung is what TestBuffersAgainstStrings expects.
type strung struct {
	site             *site
	editor           *tooltest.Editor
	file             string
	disk, held, said string // the file, what the editor holds, what it has said
	read             string // what the session knows; empty: nothing
	open, untold     bool   // untold: the editor has another version than it has said
}

func (m *strung) hold(text string) {
	if m.editor.Hold(m.file, text); !m.open {
		m.editor.Tell(m.file)
		m.said = text
	} else {
		m.untold = true
	}
	m.open, m.held = true, text
}

func (m *strung) tell() {
	if m.open {
		m.editor.Tell(m.file)
		m.said, m.untold = m.held, false
	}
}

// sees is what the session is to see.
func (m *strung) sees() string {
	if m.open {
		return m.said
	}
	return m.disk
}

// edit is what becomes of a change.
func (m *strung) edit(text string) string {
	switch {
	case m.read == "":
		return "!not_read"
	case m.read != m.sees(), m.untold && text != m.said:
		return "!stale_file"
	case !m.open:
		m.disk = text
	case text != m.said:
		m.held, m.said = text, text
	}
	m.read = text
	return text
}

func (m *strung) check(r *rapid.T) {
	if got := m.editor.Text(m.file); m.open && got != m.held {
		r.Errorf("the editor holds %q, want %q", got, m.held)
	}
	if now, err := os.ReadFile(m.file); err != nil || string(now) != m.disk {
		r.Errorf("the disk holds %q (%v), want %q", now, err, m.disk)
	}
	if unsaved := len(m.editor.Buffers.Unsaved()) > 0; unsaved != (m.open && m.said != m.disk) {
		r.Errorf("unsaved %v, the editor has said %q, the disk holds %q", unsaved, m.said, m.disk)
	}
}

// Calls of two sessions' views and a user change one buffer at the same time, and no change is lost.
func TestBufferIsChangedFromAllSides(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, e := edited(t)
	file := s.root + "/file"
	put(t, file, "disk")
	e.Type(file, "")
	const hands, times = 4, 25
	var work sync.WaitGroup
	for hand := range hands {
		work.Go(func() {
			for n := range times {
				line := fmt.Sprintf("%d:%d\n", hand, n)
				for {
					_, err := s.view().Change(t.Context(), "file", func(c *workspace.Content) (workspace.Update, error) {
						return workspace.Update{Data: append(bytes.Clone(c.Data), line...)}, nil
					})
					if err == nil {
						break
					}
					if code(err) != "stale_file" {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	work.Go(func() {
		for n := range times {
			e.Append(file, fmt.Sprintf("user:%d\n", n))
			if err := e.Say(file); err != nil && code(err) != "stale_buffer" { // a later version may have come by another way
				t.Error(err)
			}
			e.Buffers.Unsaved()
			e.Buffers.Conflicts()
		}
	})
	work.Wait()
	lines := strings.Split(strings.TrimSpace(e.Text(file)), "\n")
	seen := map[string]bool{}
	for _, line := range lines {
		seen[line] = true
	}
	if want := (hands + 1) * times; len(lines) != want || len(seen) != want {
		t.Errorf("%d lines, %d of them different, want %d", len(lines), len(seen), want)
	}
	if c, err := s.view().Look("file"); err != nil || string(c.Data) != e.Text(file) {
		t.Errorf("the session sees %q (%v), the editor holds %q", c.Data, err, e.Text(file))
	}
	holds(t, file, "disk")
}
