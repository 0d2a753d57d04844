// The unsaved texts of files in clients' editors: taken from their streams, changed there, saved
// before a process starts that would not see them. What is held of them, and what a version is
// worth, is the workspace's.

package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/toold/toold/daemon/convert"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
)

// saveTime is how long clients have to save before a process starts; part of the contract.
const saveTime = 2 * time.Second

// bufferOf returns the real path of a file that a client names.
func (r *requester) bufferOf(path string) (real string, err error) {
	if !filepath.IsAbs(path) {
		return "", fault.Invalidf("invalid_input", "The path %q of a buffer is not absolute.", convert.Short(path))
	}
	found, err := r.s.judge.policy().places.Resolve("/", path)
	return found.Real, err
}

// changed takes the text of a buffer.
func (st *stream) changed(wire *tooldv1.BufferChanged) {
	s := st.session
	real, err := s.requests.bufferOf(wire.GetPath())
	if err == nil {
		s.requests.forgetBuffer(real, func(editor *stream) bool { return editor != st }) // versions are each editor's own
		err = s.requests.buffers.Changed(real, wire.GetPath(), wire.GetVersion(), bytesOf(wire.GetContent()))
	}
	if err != nil {
		found := fault.From(err)
		details := bufferNamed{Path: convert.Short(wire.GetPath()), Version: wire.GetVersion()}
		if over, is := found.Details.(overQuotaDetails); is {
			details.overQuotaDetails = &over
		}
		s.notify(nil, pipeline.Noticed{Code: found.Code, Message: found.Message, Details: details})
		if real == "" || !slices.Contains(untaken, found.Code) {
			return
		}
	}
	s.update(func(its *state) { its.clients.editors[real] = st })
}

// bytesOf returns the bytes of a text without a copy of them, which may be 16 MiB. They are not to
// be modified: a Buffer's never are.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// untaken are the codes of buffers that are known, though their text is not held.
var untaken = []string{"buffer_too_large", "invalid_input"}

// forgetBuffer forgets what has been said of a file by the stream that has its buffer, if by is
// true of that stream.
func (r *requester) forgetBuffer(real string, by func(editor *stream) bool) {
	var had bool
	r.s.update(func(its *state) {
		editor := its.clients.editors[real]
		if had = editor != nil && by(editor); had {
			delete(its.clients.editors, real)
		}
	})
	if had {
		r.buffers.Closed(real)
	}
}

// bufferNamed is the structured part of a notice about a buffer.
type bufferNamed struct {
	Path    string `json:"path"`
	Version int64  `json:"version,omitempty"`
	*overQuotaDetails
}

// closed forgets a buffer of the stream's, or of one whose client may have come back with this one.
func (st *stream) closed(wire *tooldv1.BufferClosed) {
	requests := &st.session.requests
	if real, err := requests.bufferOf(wire.GetPath()); err == nil {
		requests.forgetBuffer(real, func(editor *stream) bool { return editor == st || editor.missed })
	}
}

// dropBuffers forgets the buffers of a stream.
func (r *requester) dropBuffers(its *state, st *stream) {
	for real, editor := range its.clients.editors {
		if editor == st {
			delete(its.clients.editors, real)
			r.buffers.Closed(real)
		}
	}
}

// applyEdit has the editor of a buffer change it, for a call.
func (r *requester) applyEdit(ctx context.Context, edit workspace.BufferEdit) (version int64, err error) {
	change := replacing(edit.Old, edit.New)
	if len(change.GetText()) > maxDelegated {
		return 0, fault.Invalidf("too_large", "The change of %s has %d bytes from its first place to its last, and an editor is sent at most %d at once. Make it in parts, or close the file there.", edit.Path, len(change.GetText()), maxDelegated)
	}
	var e *clientRequest
	r.s.update(func(its *state) {
		l, editor := its.ledger.live[edit.Call], its.clients.editors[edit.Real]
		if l == nil || editor == nil {
			return
		}
		e = newClientRequest(editBuffer, edit.Call, l.use, editor, &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_BufferEdit{BufferEdit: &tooldv1.BufferEdit{
			ToolUseId: l.use.ID, Path: convert.Clean(edit.Path), Version: edit.Version, Edits: []*tooldv1.TextEdit{change},
		}}})
		its.clients.commit(e)
	})
	if e == nil {
		return 0, fault.Invalidf("stale_file", "%s is not open in an editor any more. Read it again.", edit.Path)
	}
	answer, err := r.await(ctx, e, nil)
	if err != nil {
		return 0, err
	}
	edited := answer.(*tooldv1.BufferEdited)
	if why := edited.GetError(); why != "" {
		return 0, fault.Invalidf("stale_file", "The editor did not change %s: %s. Read it again and make the edit again.", edit.Path, strings.TrimSuffix(convert.Shortened(convert.Visible(why), convert.ShownReason), "."))
	}
	return edited.GetVersion(), nil
}

// replacing is the one edit that makes next of old: what both begin and end with stays.
func replacing(old, next []byte) *tooldv1.TextEdit {
	start := 0
	for start < len(old) && start < len(next) && old[start] == next[start] {
		start++
	}
	for start > 0 && (start < len(old) && !utf8.RuneStart(old[start]) || start < len(next) && !utf8.RuneStart(next[start])) {
		start--
	}
	end := 0
	for end < len(old)-start && end < len(next)-start && old[len(old)-1-end] == next[len(next)-1-end] {
		end++
	}
	for end > 0 && !utf8.RuneStart(old[len(old)-end]) {
		end--
	}
	return &tooldv1.TextEdit{Offset: uint64(start), Length: uint64(len(old) - start - end), Text: string(next[start : len(next)-end])}
}

// SaveBuffers has clients save what a process that is about to start would not see, and returns, as
// a sentence, which files it sees without what is in their buffers; empty: none.
func (r *requester) SaveBuffers(ctx context.Context, c *pipeline.Call) (note string) {
	unsaved := r.buffers.Unsaved()
	if len(unsaved) == 0 || r.s.recorder.Recorded(c) != nil {
		return ""
	}
	ctx, cancel := context.WithTimeoutCause(ctx, saveTime, errUnsaved)
	defer cancel()
	var asking sync.WaitGroup
	r.s.update(func(its *state) {
		for editor, paths := range its.clients.byEditor(unsaved) {
			e := newClientRequest(saveBuffers, c.Key, &c.Use, editor, &tooldv1.ExecuteResponse{Event: &tooldv1.ExecuteResponse_SaveBuffers{SaveBuffers: &tooldv1.SaveBuffers{ToolUseId: c.Use.ID, Paths: paths}}})
			its.clients.commit(e)
			asking.Go(func() {
				if _, err := r.await(ctx, e, nil); errors.Is(err, errUnsaved) { // what is saved is seen on the disk
					editor.unheard.Store(true)
				}
			})
		}
	})
	asking.Wait()
	names := convert.Each(r.buffers.Unsaved(), func(b workspace.Buffer) string { return b.Path })
	if len(names) == 0 {
		return ""
	}
	return "The call saw these files as they are on the disk, without what is unsaved in the editor: " + someOf(names) + "."
}

var errUnsaved = errors.New("the editor has not saved in time")

// byEditor returns the paths of buffers by the stream that has them and can be asked.
func (c *clients) byEditor(buffers []workspace.Buffer) map[*stream][]string {
	found, left := map[*stream][]string{}, convert.Room(maxDelegated)
	for _, b := range buffers {
		editor := c.editors[b.Real]
		if editor != nil && c.reaches(editor) && !editor.unheard.Load() && left.Takes(b.Path) {
			found[editor] = append(found[editor], convert.Clean(b.Path))
		}
	}
	return found
}

// conflicting is the structured part of a notice about a buffer whose file a process has changed.
type conflicting struct {
	Path    string `json:"path"`
	Version int64  `json:"version"`
	Unsaved bool   `json:"unsaved"`
	Gone    bool   `json:"gone"`
}

// BuffersSaved notifies clients of the buffers whose files a process has changed.
func (r *requester) BuffersSaved(c *pipeline.Call) { r.notifyConflicts(&c.Use) }

// notifyConflicts notifies clients of the buffers whose files have changed, after a call or, when
// use is nil, after an undo.
func (r *requester) notifyConflicts(use *pipeline.Use) {
	id := ""
	if use != nil {
		id = use.ID
	}
	for _, conflict := range r.buffers.Conflicts() {
		change := "has changed on the disk"
		if conflict.Gone {
			change = "is gone from the disk"
		}
		if conflict.Unsaved {
			change += ", and its buffer holds text that was never saved"
		}
		r.s.notify(use, pipeline.Noticed{
			Code: "buffer_conflict", CallID: id, Message: conflict.Path + " " + change + ".",
			Details: conflicting{conflict.Path, conflict.Version, conflict.Unsaved, conflict.Gone},
		})
	}
}
