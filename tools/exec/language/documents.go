//go:build !no_lsp

// What a server sees of the files: open documents have the text that it was sent, and it reads all
// other files itself, after it was notified that they have changed.

package language

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// documents belong to the goroutine that holds the turn.
type documents struct {
	turn    chan struct{} // one slot; full: it is held
	open    map[string]*document
	version int32 // of the last text that was sent; no number is used twice
	uses    uint64
	stamps  map[string]stamp // of the files on the disk, as the server was last notified
}

// A document is a file that is open in the server.
type document struct {
	version int32
	sum     [sha256.Size]byte
	used    uint64
	shownAt uint64 // the last publication before the text was sent
}

// A stamp identifies a version of a file.
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

// put opens the file in the server with that text, or sends it the text even if it has it already.
// The turn is held.
func (s *server) put(path string, text []byte) *document {
	d := &s.documents
	d.version++
	d.uses++
	valid := strings.ToValidUTF8(string(text), "\uFFFD")
	_, shownAt := s.news.of(path)
	next := &document{version: d.version, sum: sha256.Sum256(text), used: d.uses, shownAt: shownAt}
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

// makeRoom closes the least recently used document, if there are too many. The turn is held.
func (s *server) makeRoom() {
	open := s.documents.open
	if len(open) >= maxOpen {
		s.shut(slices.MinFunc(slices.Collect(maps.Keys(open)), func(a, b string) int { return cmp.Compare(open[a].used, open[b].used) }))
	}
}

// about sends a notification about a document. The turn is held.
func (s *server) about(method, path string) {
	s.notify(method, map[string]any{"textDocument": wireDocument{URI: uriOf(path)}})
}

// shut makes the server read the file from the disk from now on. The turn is held.
func (s *server) shut(path string) {
	delete(s.documents.open, path)
	s.about("textDocument/didClose", path)
}

// saved notifies the server that the document equals the file on the disk. The turn is held.
func (s *server) saved(path string) { s.about("textDocument/didSave", path) }

// refresh updates everything but the file of the query: documents that are open, or must be, get
// the query's Text, and the server is notified of other files that have changed on the disk. The
// turn is held.
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

// refreshDisk notifies the server of files that have changed on the disk. The turn is held.
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

// projects are files that describe the structure of a project.
var projects = []string{
	"go.mod", "go.sum", "go.work", "package.json", "tsconfig.json", "jsconfig.json", "pyproject.toml", "setup.cfg", "pyrightconfig.json",
	"Cargo.toml", "Cargo.lock", "compile_commands.json", ".clangd",
}

// scan returns the stamps of all files of the root that the server serves or that describe the
// project. It returns nil if there are too many, or if ctx has ended.
func (s *server) scan(ctx context.Context) map[string]stamp {
	found, seen := map[string]stamp{}, 0
	_ = filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		seen++
		switch name := filepath.Base(path); {
		case ctx.Err() != nil || seen > maxScanned:
			return fs.SkipAll
		case err != nil:
			return nil // the server cannot read it now either
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
