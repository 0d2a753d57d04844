//go:build !no_lsp

// What a server sees of the files: documents that are open in it have the text that we show it, all others are its own to
// read, once it has been told that they have changed. It does not know what is asked about them.

package language

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// documents belong to whoever holds the turn.
type documents struct {
	turn    chan struct{} // one slot; full: somebody holds it
	open    map[string]*document
	version int32 // of the last text that was shown; none is given twice
	uses    uint64
	stamps  map[string]stamp // of the files on the disk, as the server was last told
}

// A document is open in the server.
type document struct {
	version int32
	sum     [sha256.Size]byte
	used    uint64
	shownAt uint64 // the last publication before the text was shown
}

// A stamp tells whether a file has changed.
type stamp struct {
	size int64
	time time.Time
}

func newDocuments() documents {
	return documents{turn: make(chan struct{}, 1), open: map[string]*document{}}
}

// take waits for the turn.
func (d *documents) take(ctx context.Context) error {
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *documents) give() { <-d.turn }

// show makes text what the server sees of the file. The turn is held.
func (s *server) show(path string, text []byte) *document {
	doc := s.documents.open[path]
	if doc == nil || doc.sum != sha256.Sum256(text) {
		return s.put(path, text)
	}
	s.documents.uses++
	doc.used = s.documents.uses
	return doc
}

// put opens the file in the server with that text, or gives it the text even if it has it. The turn is held.
func (s *server) put(path string, text []byte) *document {
	d := &s.documents
	d.version++
	d.uses++
	valid := strings.ToValidUTF8(string(text), "\uFFFD")
	next := &document{version: d.version, sum: sha256.Sum256(text), used: d.uses, shownAt: s.published.now()}
	if d.open[path] == nil {
		s.makeRoom()
		s.notify("textDocument/didOpen", map[string]any{
			"textDocument": wireOpening{URI: uriOf(path), LanguageID: s.spec.identifier(path), Version: next.version, Text: valid},
		})
	} else {
		s.notify("textDocument/didChange", map[string]any{
			"textDocument":   wireDocument{URI: uriOf(path), Version: &next.version},
			"contentChanges": []map[string]any{{"text": valid}},
		})
	}
	d.open[path] = next
	return next
}

// makeRoom closes the document that was not used for the longest time, if there are too many. The turn is held.
func (s *server) makeRoom() {
	if len(s.documents.open) < maxOpen {
		return
	}
	oldest := ""
	for path, doc := range s.documents.open {
		if oldest == "" || doc.used < s.documents.open[oldest].used {
			oldest = path
		}
	}
	s.shut(oldest)
}

// shut has the server read the file itself from now on. The turn is held.
func (s *server) shut(path string) {
	delete(s.documents.open, path)
	s.notify("textDocument/didClose", map[string]any{"textDocument": wireDocument{URI: uriOf(path)}})
}

// saved tells the server that the document is what stands on the disk. The turn is held.
func (s *server) saved(path string) {
	s.notify("textDocument/didSave", map[string]any{"textDocument": wireDocument{URI: uriOf(path)}})
}

// refresh has the server see the present state of everything but the file that is asked about: of documents that are open,
// and of those that have to be, what the query's Text says, of all else what stands on the disk. The turn is held.
func (s *server) refresh(ctx context.Context, q Query) {
	wanted := slices.Collect(maps.Keys(s.documents.open))
	for _, path := range q.Others {
		if s.documents.open[path] == nil && slices.Contains(s.spec.Extensions, strings.ToLower(filepath.Ext(path))) && len(wanted) < maxOpen-1 {
			wanted = append(wanted, path)
		}
	}
	for _, path := range wanted {
		if path == q.Path {
			continue
		}
		if now, err := q.Text(path); err == nil {
			s.show(path, now)
		} else if s.documents.open[path] != nil {
			s.shut(path)
		}
	}
	s.refreshDisk(ctx)
}

// refreshDisk tells the server which files have changed on the disk. The turn is held.
func (s *server) refreshDisk(ctx context.Context) {
	was, now := s.documents.stamps, s.scan(ctx)
	if now == nil {
		return
	}
	var events []wireFileEvent
	for path, stamp := range now {
		if before, known := was[path]; !known {
			events = append(events, wireFileEvent{uriOf(path), fileCreated})
		} else if before != stamp {
			events = append(events, wireFileEvent{uriOf(path), fileChanged})
		}
	}
	for path := range was {
		if _, there := now[path]; !there {
			events = append(events, wireFileEvent{uriOf(path), fileDeleted})
		}
	}
	if len(events) > 0 {
		s.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": events})
	}
	s.documents.stamps = now
}

// projects are files that say how a project is put together.
var projects = []string{
	"go.mod", "go.sum", "go.work", "package.json", "tsconfig.json", "jsconfig.json", "pyproject.toml", "setup.cfg", "pyrightconfig.json",
	"Cargo.toml", "Cargo.lock", "compile_commands.json", ".clangd",
}

// scan looks at all files of the root that the server serves, or that say how the project is put together. Nil: there are too
// many to be looked at each time, or ctx has ended.
func (s *server) scan(ctx context.Context) map[string]stamp {
	found, seen := map[string]stamp{}, 0
	_ = filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		seen++
		switch name := filepath.Base(path); {
		case ctx.Err() != nil || seen > maxScanned:
			return fs.SkipAll
		case err != nil:
			return nil // what cannot be looked at now is not there for the server either
		case entry.IsDir() && path != s.root && (strings.HasPrefix(name, ".") || name == "node_modules"):
			return fs.SkipDir
		case entry.Type().IsRegular() && (slices.Contains(s.spec.Extensions, strings.ToLower(filepath.Ext(name))) || slices.Contains(projects, name)):
			if info, err := entry.Info(); err == nil {
				found[path] = stamp{info.Size(), info.ModTime()}
			}
		}
		return nil
	})
	if ctx.Err() != nil || seen > maxScanned {
		return nil
	}
	return found
}
