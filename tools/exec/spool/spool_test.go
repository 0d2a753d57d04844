package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func openDir(t testing.TB) *Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func create(t testing.TB, d *Dir, name string) *Output {
	t.Helper()
	o, err := d.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func write(t testing.TB, o *Output, ch Channel, text string) {
	t.Helper()
	if err := o.Write(ch, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// all reads everything by place, with a buffer of size bytes: the bytes of both channels, and each channel's.
func all(t testing.TB, o *Output, size int) (both string, each [channels]string) {
	t.Helper()
	buf := make([]byte, size)
	var text strings.Builder
	for {
		r, err := o.Next(int64(text.Len()), buf)
		if errors.Is(err, io.EOF) || err == nil && len(r.Data) == 0 {
			return text.String(), each
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Offset != int64(len(each[r.Channel])) {
			t.Fatalf("at %d: the run says offset %d of channel %d, which has %d bytes by then", text.Len(), r.Offset, r.Channel, len(each[r.Channel]))
		}
		each[r.Channel] += string(r.Data)
		text.Write(r.Data)
	}
}

// one reads one channel from offset.
func one(t testing.TB, o *Output, ch Channel, offset int64, size int) string {
	t.Helper()
	buf := make([]byte, size)
	var text strings.Builder
	for {
		r, err := o.NextOf(ch, offset+int64(text.Len()), buf)
		if errors.Is(err, io.EOF) || err == nil && len(r.Data) == 0 {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		text.Write(r.Data)
	}
}

// Whatever is written in whatever pieces can be read back from any place, while the output grows, after its end, and
// by another daemon from the files alone.
func TestReadsWhatWasWritten(t *testing.T) {
	d := openDir(t)
	number := 0
	rapid.Check(t, func(rt *rapid.T) {
		number++
		name := fmt.Sprintf("call%d", number)
		o := create(t, d, name)
		var both string
		var each [channels]string
		compare := func(o *Output, state string) {
			size := rapid.IntRange(1, 40).Draw(rt, "buffer")
			gotBoth, gotEach := all(t, o, size)
			if gotBoth != both || gotEach != each || o.Total() != int64(len(both)) {
				rt.Fatalf("%s: %q, %q; want %q, %q", state, gotBoth, gotEach, both, each)
			}
			for ch := range Channel(channels) {
				from := rapid.IntRange(0, len(each[ch])).Draw(rt, "from")
				if got := one(t, o, ch, int64(from), size); got != each[ch][from:] || o.Size(ch) != int64(len(each[ch])) {
					rt.Fatalf("%s: channel %d from %d: %q, want %q", state, ch, from, got, each[ch][from:])
				}
			}
		}
		for range rapid.IntRange(0, 8).Draw(rt, "writes") {
			ch := Channel(rapid.IntRange(0, 1).Draw(rt, "channel"))
			text := rapid.StringN(0, 20, -1).Draw(rt, "text")
			write(t, o, ch, text)
			both += text
			each[ch] += text
			compare(o, "growing")
		}
		if err := o.Close(); err != nil {
			rt.Fatal(err)
		}
		compare(o, "ended")
		found, err := d.Find(name)
		if both == "" {
			if !errors.Is(err, fs.ErrNotExist) {
				rt.Fatalf("an output without a byte: %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		compare(found, "found")
	})
}

func TestFollow(t *testing.T) {
	d := openDir(t)
	o := create(t, d, "call")
	const pieces = 2000
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var got [channels]int64
			buf := make([]byte, 100)
			for pos := int64(0); ; {
				changed := o.Changed()
				r, err := o.Next(pos, buf)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Error(err)
					return
				}
				if len(r.Data) == 0 {
					<-changed
				}
				pos += int64(len(r.Data))
				got[r.Channel] += int64(len(r.Data))
			}
			if got != [channels]int64{pieces * 3, pieces * 5} {
				t.Errorf("a follower got %v", got)
			}
		})
	}
	var writers sync.WaitGroup
	for ch, text := range map[Channel]string{Stdout: "abc", Stderr: "12345"} {
		writers.Go(func() {
			for range pieces {
				if err := o.Write(ch, []byte(text)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

func TestLimit(t *testing.T) {
	d := openDir(t)
	d = d.Limited(100)
	o := create(t, d, "call")
	write(t, o, Stdout, strings.Repeat("a", 60))
	err := o.Write(Stderr, bytes.Repeat([]byte("b"), 60))
	if !errors.Is(err, ErrLimit) || errors.Is(err, ErrFull) {
		t.Errorf("over the limit: %v", err)
	}
	if o.Size(Stdout) != 60 || o.Size(Stderr) != 100-60-recordSize {
		t.Errorf("kept %d and %d bytes", o.Size(Stdout), o.Size(Stderr))
	}
	if err := o.Write(Stdout, []byte("c")); !errors.Is(err, ErrLimit) {
		t.Errorf("after that: %v", err)
	}
	if both, _ := all(t, o, 10); int64(len(both)) != o.Total() {
		t.Errorf("%d bytes can be read of %d", len(both), o.Total())
	}
}

func TestNamesAndModes(t *testing.T) {
	d := openDir(t)
	for _, name := range []string{"", ".", "..", "a/b", "../a", "a\x00b"} {
		if _, err := d.Create(name); err == nil {
			t.Errorf("created %q", name)
		}
		if _, err := d.Spill(name, "x"); err == nil {
			t.Errorf("spilled %q", name)
		}
	}
	o := create(t, d, "call")
	write(t, o, Stderr, "x")
	path, err := d.Spill("text", "x")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{d.Path(): 0o700, o.Path(): 0o600, o.base + indexSuffix: 0o600, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %o", name, info.Mode(), err, want)
		}
	}
	if err := create(t, d, "call").Write(Stdout, []byte("y")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second output of the same name: %v", err)
	}
	if err := os.RemoveAll(d.Path()); err != nil {
		t.Fatal(err)
	}
	write(t, create(t, d, "after"), Stdout, "the folder is made again")
	if _, err := Open("relative"); err == nil {
		t.Error("opened a relative folder")
	}
}

// The memory for an output does not grow with it, and no chunk allocates.
func TestNoAllocationPerChunk(t *testing.T) {
	o := create(t, openDir(t), "call")
	chunk := bytes.Repeat([]byte("x"), 4096)
	write(t, o, Stdout, "open the file")
	if n := testing.AllocsPerRun(1000, func() {
		if err := o.Write(Stdout, chunk); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a chunk", n)
	}
}

// An index may be torn, stale or made up: what is read from it is consistent, and all of the raw file is there.
func FuzzIndex(f *testing.F) {
	record := func(ch Channel, start, offset int64) []byte {
		buf := run{ch, start, offset}.encode()
		return buf[:]
	}
	f.Add(record(Stderr, 3, 0), 10)
	f.Add(append(record(Stderr, 0, 0), record(Stdout, 4, 0)...), 10)
	f.Add(append(record(Stderr, 3, 0), record(Stdout, 5, 3)[:9]...), 10)
	f.Add(record(Stdout, 1<<40, 7), 3)
	d := openDir(f)
	f.Fuzz(func(t *testing.T, index []byte, size int) {
		size = max(1, min(size, 200))
		raw := make([]byte, size)
		for i := range raw {
			raw[i] = byte(i)
		}
		base := filepath.Join(d.Path(), "call")
		if err := errors.Join(os.WriteFile(base+rawSuffix, raw, 0o600), os.WriteFile(base+indexSuffix, index, 0o600)); err != nil {
			t.Fatal(err)
		}
		o, err := d.Find("call")
		if err != nil {
			t.Fatal(err)
		}
		both, each := all(t, o, 7)
		if both != string(raw) {
			t.Errorf("read %q of %q", both, raw)
		}
		for ch := range Channel(channels) {
			if got := one(t, o, ch, 0, 7); got != each[ch] || o.Size(ch) != int64(len(got)) {
				t.Errorf("channel %d: %q by itself, %q by place, size %d", ch, got, each[ch], o.Size(ch))
			}
		}
	})
}
