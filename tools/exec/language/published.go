//go:build !no_lsp

// The diagnostics that a server has published, by file, within limits.

package language

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A publication is a server's last diagnostics of one file.
type publication struct {
	version *int32 // of the document; nil: the server sends no version
	serial  uint64 // increases with each publication of the server
	list    []wireDiagnostic
	dropped int
}

// published holds a server's publications, within its limits.
type published struct {
	mu      sync.Mutex
	serial  uint64
	files   map[string]publication // by path
	kept    int                    // diagnostics in files
	changed beacon
}

func newPublished() published { return published{files: map[string]publication{}} }

// bound shortens what is too long in a diagnostic.
func (d *wireDiagnostic) bound() {
	d.Message, d.Source = printable(d.Message, 2000), printable(d.Source, 100)
}

func (p *published) take(w wirePublication) {
	path := pathOf(w.URI)
	if path == "" {
		return
	}
	for i := range w.Diagnostics {
		w.Diagnostics[i].bound()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.files[path]; !known && len(p.files) >= maxPublished {
		return
	}
	p.serial++
	p.kept -= len(p.files[path].list)
	kept := slices.Clone(w.Diagnostics[:min(len(w.Diagnostics), maxFileDiags, maxDiagnostics-p.kept)])
	p.kept += len(kept)
	p.files[path] = publication{version: w.Version, serial: p.serial, list: kept, dropped: len(w.Diagnostics) - len(kept)}
	p.changed.light()
}

// now returns the number of the last publication.
func (p *published) now() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serial
}

// of returns the publication for one file.
func (p *published) of(path string) publication {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[path]
}

// all returns the publications for all files.
func (p *published) all() map[string]publication {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.files)
}

// covers reports whether the publication is about that version of its document, which the server
// was sent after serial.
func (p publication) covers(version int32, after uint64) bool {
	return p.version != nil && *p.version >= version || p.version == nil && p.serial > after
}

// quiet returns after what time without another publication this one counts as the last.
func (p publication) quiet(known time.Duration) time.Duration {
	if p.version == nil {
		return blindQuiet
	}
	return known
}

// await waits for a publication about that version of the file; false: the server or ctx has ended
// before.
func (p *published) await(ctx context.Context, gone <-chan struct{}, path string, version int32, after uint64) bool {
	return await(ctx, gone, func() (bool, <-chan struct{}) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.files[path].covers(version, after), p.changed.wait()
	})
}

// settle waits until nothing was published for the time of quiet, or until the server or ctx has
// ended.
func (p *published) settle(ctx context.Context, gone <-chan struct{}, quiet time.Duration) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	timer := time.AfterFunc(quiet, end)
	defer timer.Stop()
	await(ctx, gone, func() (bool, <-chan struct{}) {
		timer.Reset(quiet)
		p.mu.Lock()
		defer p.mu.Unlock()
		return false, p.changed.wait()
	})
}
