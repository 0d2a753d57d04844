package log

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
)

// Memory is a [Log] that ends with its process. The zero value is empty.
type Memory struct {
	mu   sync.Mutex
	logs map[Workspace]*memoryLog
}

type memoryLog struct {
	last     Pos // of the last segment that was appended
	segments []Segment
}

// of returns a workspace's log; mu is held.
func (m *Memory) of(w Workspace) *memoryLog {
	if m.logs == nil {
		m.logs = map[Workspace]*memoryLog{}
	}
	if m.logs[w] == nil {
		m.logs[w] = &memoryLog{}
	}
	return m.logs[w]
}

func (l *memoryLog) end() Segment {
	if len(l.segments) == 0 {
		return Segment{}
	}
	s := l.segments[len(l.segments)-1]
	return Segment{Pos: s.Pos, Data: bytes.Clone(s.Data)}
}

// Append is [Log.Append].
func (m *Memory) Append(ctx context.Context, w Workspace, prev Pos, data []byte) (Pos, error) {
	if err := CheckSegment(w, data); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.of(w)
	if last := l.end(); last.Pos != prev {
		return 0, &FencedError{Last: last}
	}
	l.last++
	l.segments = append(l.segments, Segment{Pos: l.last, Data: bytes.Clone(data)})
	return l.last, nil
}

// Last is [Log.Last].
func (m *Memory) Last(ctx context.Context, w Workspace) (Segment, error) {
	if err := w.Check(); err != nil {
		return Segment{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(w).end(), ctx.Err()
}

// Read is [Log.Read].
func (m *Memory) Read(ctx context.Context, w Workspace, from Pos) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		if err := w.Check(); err != nil {
			yield(Segment{}, err)
			return
		}
		m.mu.Lock()
		segments := slices.Clone(m.of(w).segments)
		m.mu.Unlock()
		for _, s := range segments {
			if err := ctx.Err(); err != nil {
				yield(Segment{}, err)
				return
			}
			if s.Pos >= from && !yield(Segment{Pos: s.Pos, Data: bytes.Clone(s.Data)}, nil) {
				return
			}
		}
	}
}

// Purge is [Log.Purge].
func (m *Memory) Purge(ctx context.Context, w Workspace, before Pos) error {
	if err := w.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.of(w)
	if err := CheckPurge(l.end(), before); err != nil {
		return err
	}
	for len(l.segments) > 1 && l.segments[0].Pos < before {
		l.segments = l.segments[1:]
	}
	return ctx.Err()
}

// Lose removes the last segments of a workspace, as a log does that breaks its
// promise. Their positions are given again. It is for tests.
func (m *Memory) Lose(w Workspace, segments int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.of(w)
	l.segments = l.segments[:max(0, len(l.segments)-segments)]
	l.last = l.end().Pos
}
