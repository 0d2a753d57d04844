//go:build !no_lsp

// What a server reports it is busy with.

package language

import (
	"context"
	"strings"
	"sync"
	"time"
)

// A beacon wakes all who wait for a change. Its owner's mutex guards it.
type beacon struct{ lit chan struct{} }

func (b *beacon) wait() <-chan struct{} {
	if b.lit == nil {
		b.lit = make(chan struct{})
	}
	return b.lit
}

// await waits until look reports that it is done, looking again at each change that it returns. It reports false if the server or
// ctx has ended before.
func await(ctx context.Context, gone <-chan struct{}, look func() (done bool, changed <-chan struct{})) bool {
	for {
		done, changed := look()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-gone:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (b *beacon) light() {
	if b.lit != nil {
		close(b.lit)
		b.lit = nil
	}
}

// loads are the progress reports that a server has begun and not ended.
type loads struct {
	mu      sync.Mutex
	titles  map[string]string // by token
	changed beacon
}

func newLoads() loads { return loads{titles: map[string]string{}} }

func (l *loads) take(p wireProgress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := string(p.Token)
	switch p.Value.Kind {
	case "begin":
		if len(l.titles) < maxProgress {
			l.titles[token] = printable(strings.TrimSpace(p.Value.Title), 100)
		}
	case "end":
		delete(l.titles, token)
		l.changed.light()
	}
}

// busy returns one thing in progress; empty: none.
func (l *loads) busy() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	least := ""
	for _, title := range l.titles {
		if title == "" {
			title = "working"
		}
		if least == "" || title < least {
			least = title
		}
	}
	return least
}

// await waits until nothing is in progress, at most for limit, or until the server or ctx has
// ended.
func (l *loads) await(ctx context.Context, gone <-chan struct{}, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	await(ctx, gone, func() (bool, <-chan struct{}) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.titles) == 0, l.changed.wait()
	})
}
