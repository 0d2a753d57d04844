// Package logtest holds what every log must do, as a test that each
// implementation runs.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/toold/toold/cluster/log"
)

// Test runs all cases on an implementation. Open returns a log on the same
// storage each time, which is closed when the test ends.
func Test(t *testing.T, open func(testing.TB) log.Log) {
	for _, c := range []struct {
		name string
		test func(*testing.T, log.Log)
	}{
		{"an empty log", empty},
		{"append", appends},
		{"fence", fence},
		{"a repeated append", repeated},
		{"sizes", sizes},
		{"names", names},
		{"refused", refused},
		{"read from a position", readFrom},
		{"purge", purge},
		{"many writers", manyWriters},
		{"a context that has ended", ended},
		{"a reader that stops", stops},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
	t.Run("open again", func(t *testing.T) { again(t, open) })
}

// workspace returns one that only this test uses.
func workspace(t testing.TB) log.Workspace {
	return log.Workspace{Principal: "of the test", Name: t.Name()}
}

// Append appends as an owner does: it repeats until the answer is definite.
func Append(t testing.TB, l log.Log, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	for {
		pos, err := l.Append(t.Context(), w, prev, data)
		fenced, isFenced := errors.AsType[*log.FencedError](err)
		switch {
		case err == nil:
			return pos, nil
		case isFenced && bytes.Equal(fenced.Last.Data, data):
			return fenced.Last.Pos, nil
		case isFenced, errors.Is(err, log.ErrInvalid), t.Context().Err() != nil:
			return 0, err
		}
	}
}

func must(t testing.TB, l log.Log, w log.Workspace, prev log.Pos, data string) log.Pos {
	t.Helper()
	pos, err := Append(t, l, w, prev, []byte(data))
	if err != nil {
		t.Fatalf("append %q behind %d: %v", data, prev, err)
	}
	if pos <= prev {
		t.Fatalf("append %q behind %d: got position %d, which is not behind it", data, prev, pos)
	}
	return pos
}

func fill(t testing.TB, l log.Log, w log.Workspace, data ...string) []log.Pos {
	t.Helper()
	all := []log.Pos{0}
	for _, d := range data {
		all = append(all, must(t, l, w, all[len(all)-1], d))
	}
	return all[1:]
}

// holds fails the test unless the log has exactly these segments.
func holds(t testing.TB, l log.Log, w log.Workspace, from log.Pos, data ...string) {
	t.Helper()
	var got []string
	last := log.Pos(0)
	for s, err := range l.Read(t.Context(), w, from) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Pos <= last || s.Pos < from {
			t.Errorf("position %d comes after %d, read from %d", s.Pos, last, from)
		}
		last = s.Pos
		got = append(got, string(s.Data))
	}
	if fmt.Sprintf("%.20q", got) != fmt.Sprintf("%.20q", data) {
		t.Errorf("the log has %.20q from %d, expected %.20q", got, from, data)
	}
}

func last(t testing.TB, l log.Log, w log.Workspace) log.Segment {
	t.Helper()
	s, err := l.Last(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func empty(t *testing.T, l log.Log) {
	w := workspace(t)
	if s := last(t, l, w); s.Pos != 0 || len(s.Data) != 0 {
		t.Errorf("an empty log ends with %d %q", s.Pos, s.Data)
	}
	holds(t, l, w, 0)
	holds(t, l, w, 100)
	_, err := l.Append(t.Context(), w, 7, []byte("x"))
	if fenced, ok := errors.AsType[*log.FencedError](err); !ok || fenced.Last.Pos != 0 {
		t.Errorf("an append behind what does not exist: %v", err)
	}
	holds(t, l, w, 0)
}

func appends(t *testing.T, l log.Log) {
	w := workspace(t)
	all := fill(t, l, w, "one", "two", "three")
	holds(t, l, w, 0, "one", "two", "three")
	if s := last(t, l, w); s.Pos != all[2] || string(s.Data) != "three" {
		t.Errorf("the log ends with %d %q, expected %d three", s.Pos, s.Data, all[2])
	}
}

func fence(t *testing.T, l log.Log) {
	w := workspace(t)
	all := fill(t, l, w, "one", "two")
	for _, prev := range []log.Pos{0, all[0], all[1] + 1} {
		_, err := Append(t, l, w, prev, []byte("late"))
		fenced, ok := errors.AsType[*log.FencedError](err)
		if !ok || fenced.Last.Pos != all[1] || string(fenced.Last.Data) != "two" {
			t.Errorf("append behind %d: %v, expected to be fenced by the segment at %d", prev, err, all[1])
		}
	}
	must(t, l, w, all[1], "three")
	holds(t, l, w, 0, "one", "two", "three")
}

// An append whose answer was lost is made again.
func repeated(t *testing.T, l log.Log) {
	w := workspace(t)
	first := must(t, l, w, 0, "one")
	second := must(t, l, w, first, "two")
	_, err := l.Append(t.Context(), w, first, []byte("two"))
	if fenced, ok := errors.AsType[*log.FencedError](err); !ok || fenced.Last.Pos != second || string(fenced.Last.Data) != "two" {
		t.Errorf("the append repeated: %v, expected the segment itself at %d", err, second)
	}
	holds(t, l, w, 0, "one", "two")
}

func sizes(t *testing.T, l log.Log) {
	w := workspace(t)
	whole := bytes.Repeat([]byte{0, 0xff, '\n', '\r', 0x80}, log.MaxSegment/5+1)[:log.MaxSegment]
	all := fill(t, l, w, string(whole), "\x00", string(whole[:log.MaxSegment-1]))
	holds(t, l, w, 0, string(whole), "\x00", string(whole[:log.MaxSegment-1]))
	if s := last(t, l, w); s.Pos != all[2] || !bytes.Equal(s.Data, whole[:log.MaxSegment-1]) {
		t.Error("the last segment came back with other bytes")
	}
	for s, err := range l.Read(t.Context(), w, 0) {
		if err != nil || !bytes.Equal(s.Data, whole) {
			t.Error("the first segment came back with other bytes", err)
		}
		break
	}
}

func names(t *testing.T, l log.Log) {
	pairs := [][2]string{
		{"a.b", "c"},
		{"a", "b.c"},
		{"*", ">"},
		{">", "*"},
		{"a", "*"},
		{" ", "\t\n"},
		{"Ünïcode 🙂", "工作区"},
		{"A", "b"},
		{"a", "B"},
		{"a", "b"},
		{"a\x00b", "c"},
		{"%", "_"},
		{"'; drop table segments; --", `"`},
		{"not\xffUTF-8", "\xfe"},
		{"x", string(bytes.Repeat([]byte("n"), 4096))},
	}
	var all []log.Workspace
	for _, pair := range pairs {
		all = append(all, log.Workspace{Principal: pair[0], Name: pair[1] + t.Name()}) // of this test only
	}
	for i, w := range all {
		must(t, l, w, 0, fmt.Sprint(i))
	}
	for i, w := range all {
		holds(t, l, w, 0, fmt.Sprint(i))
	}
}

func refused(t *testing.T, l log.Log) {
	w := workspace(t)
	for name, err := range map[string]error{
		"no principal": appendErr(t, l, log.Workspace{Name: "n"}, []byte("x")),
		"no name":      appendErr(t, l, log.Workspace{Principal: "p"}, []byte("x")),
		"empty":        appendErr(t, l, w, nil),
		"too large":    appendErr(t, l, w, make([]byte, log.MaxSegment+1)),
		"purge":        l.Purge(t.Context(), log.Workspace{}, 1),
	} {
		if !errors.Is(err, log.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Last(t.Context(), log.Workspace{Name: "n"}); !errors.Is(err, log.ErrInvalid) {
		t.Errorf("the last one of a workspace without a principal: %v", err)
	}
	for _, err := range l.Read(t.Context(), log.Workspace{Name: "n"}, 0) {
		if !errors.Is(err, log.ErrInvalid) {
			t.Errorf("a workspace without a principal is read: %v", err)
		}
	}
	holds(t, l, w, 0)
}

func appendErr(t *testing.T, l log.Log, w log.Workspace, data []byte) error {
	_, err := l.Append(t.Context(), w, 0, data)
	return err
}

func readFrom(t *testing.T, l log.Log) {
	w, other := workspace(t), log.Workspace{Principal: "another", Name: t.Name()}
	var all []log.Pos
	for i, d := range []string{"one", "two", "three", "four"} { // of another workspace between
		must(t, l, other, last(t, l, other).Pos, "other "+d)
		all = append(all, must(t, l, w, last(t, l, w).Pos, d))
		if i > 0 && all[i] <= all[i-1] {
			t.Errorf("positions: %v", all)
		}
	}
	holds(t, l, w, all[1], "two", "three", "four")
	holds(t, l, w, all[1]+1, "three", "four")
	holds(t, l, w, all[3], "four")
	holds(t, l, w, all[3]+1)
}

func purge(t *testing.T, l log.Log) {
	w, other := workspace(t), log.Workspace{Principal: "another", Name: t.Name()}
	all := fill(t, l, w, "one", "two", "three")
	fill(t, l, other, "kept")
	if err := l.Purge(t.Context(), w, all[1]); err != nil {
		t.Fatal(err)
	}
	holds(t, l, w, all[1], "two", "three")
	for s, err := range l.Read(t.Context(), w, 0) {
		if err != nil || s.Pos > all[1] {
			t.Errorf("the purged log begins at %d, expected %d at most: %v", s.Pos, all[1], err)
		}
		break
	}
	if err := l.Purge(t.Context(), w, all[2]); err != nil {
		t.Fatal(err)
	}
	if err := l.Purge(t.Context(), w, all[2]+1000); !errors.Is(err, log.ErrUnknown) {
		t.Errorf("a purge behind the end: %v", err)
	}
	holds(t, l, w, all[2], "three")
	four := must(t, l, w, all[2], "four")
	if four <= all[2] {
		t.Errorf("after a purge the position %d comes after %d", four, all[2])
	}
	holds(t, l, w, all[2], "three", "four")
	holds(t, l, other, 0, "kept")
	if _, err := Append(t, l, w, 0, []byte("first")); err == nil {
		t.Error("a purged log takes an append as if it were empty")
	}
}

// Of many that append behind the same segment one wins, and the others see it.
func manyWriters(t *testing.T, l log.Log) {
	w := workspace(t)
	prev := must(t, l, w, 0, "start")
	for round := range 5 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		winners := map[log.Pos]string{}
		for i := range 8 {
			wg.Go(func() {
				data := fmt.Sprintf("round %d by %d", round, i)
				if pos, err := Append(t, l, w, prev, []byte(data)); err == nil {
					mu.Lock()
					winners[pos] = data
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		s := last(t, l, w)
		if len(winners) != 1 || winners[s.Pos] != string(s.Data) {
			t.Fatalf("round %d: winners %v, the log ends with %d %q", round, winners, s.Pos, s.Data)
		}
		prev = s.Pos
	}
}

func ended(t *testing.T, l log.Log) {
	w := workspace(t)
	first := must(t, l, w, 0, "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, w, first, []byte("two")); !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if _, err := l.Last(ctx, w); !errors.Is(err, context.Canceled) {
		t.Errorf("last: %v", err)
	}
	for _, err := range l.Read(ctx, w, 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("read: %v", err)
		}
	}
	if err := l.Purge(ctx, w, first); !errors.Is(err, context.Canceled) {
		t.Errorf("purge: %v", err)
	}
	must(t, l, w, first, "two") // stored before or not
	holds(t, l, w, 0, "one", "two")
}

func stops(t *testing.T, l log.Log) {
	w := workspace(t)
	all := fill(t, l, w, "one", "two", "three")
	for _, err := range l.Read(t.Context(), w, 0) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for s, err := range l.Read(t.Context(), w, 0) { // appends while it reads
		if err != nil {
			t.Fatal(err)
		}
		if s.Pos == all[0] {
			must(t, l, w, all[2], "four")
		}
	}
	holds(t, l, w, 0, "one", "two", "three", "four")
}

func again(t *testing.T, open func(testing.TB) log.Log) {
	w := workspace(t)
	first := open(t)
	all := fill(t, first, w, "one", "two")
	second := open(t)
	holds(t, second, w, 0, "one", "two")
	if _, err := Append(t, second, w, all[0], []byte("late")); err == nil {
		t.Error("the log that was opened again forgets its end")
	}
	must(t, second, w, all[1], "three")
	if _, err := Append(t, first, w, all[1], []byte("also three")); err == nil {
		t.Error("the log that was open does not see what another stored")
	}
	holds(t, first, w, 0, "one", "two", "three")
}
