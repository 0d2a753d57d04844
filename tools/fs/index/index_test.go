package index_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/index"
)

// A place is a directory of which an index learns.
type place struct {
	t   *testing.T
	dir string
	set *index.Set
	*index.Index
}

func newPlace(t *testing.T, limit int64) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), set: index.NewSet(limit)}
	p.set.Settle = 30 * time.Millisecond
	p.Index = p.set.Of("one")
	t.Cleanup(func() { _ = p.set.Close() })
	return p
}

func (p *place) stamp(name string) index.Stamp {
	p.t.Helper()
	var s unix.Stat_t
	if err := unix.Lstat(filepath.Join(p.dir, name), &s); err != nil {
		p.t.Fatal(err)
	}
	return index.StampOf(&s)
}

func (p *place) put(name, text string) string {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return file
}

// learn has the files read and waits for that.
func (p *place) learn(names ...string) {
	p.t.Helper()
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	defer root.Close()
	var unknown index.Unknown
	for _, name := range names {
		unknown.Add(name, p.stamp(name))
	}
	p.Learn(root, &unknown)
	p.set.Wait()
	if p.Held().Building {
		p.t.Error("it is still building after Wait")
	}
}

// skipUnlessIndexed skips where nothing is remembered, since the file system does not tell of changes.
func (p *place) skipUnlessIndexed() {
	p.t.Helper()
	p.put("probe", "probe")
	p.learn("probe")
	if p.Text(p.stamp("probe")) == nil {
		p.t.Skip("nothing is remembered of files on this file system")
	}
	p.set.Forget(0)
}

func TestTextLacks(t *testing.T) {
	p := newPlace(t, 1<<20)
	p.skipUnlessIndexed()
	p.put("a", "The quick BROWN fox\njumps over\n")
	p.put("binary", "\x00brown")
	p.put("wide", "\xff\xfeb\x00r\x00o\x00w\x00n\x00")
	p.put("empty", "")
	p.learn("a", "binary", "wide", "empty")
	for _, c := range []struct {
		name  string
		texts []string
		want  bool
	}{
		{"a", []string{"brown"}, false},
		{"a", []string{"quick BROWN"}, false},
		{"a", []string{"absent"}, true},
		{"a", []string{"absent", "fox"}, false},
		{"a", []string{"absent", "elsewhere"}, true},
		{"a", []string{"fo"}, false},
		{"a", []string{"absent", "x"}, false},
		{"a", nil, false},
		{"a", []string{"fox\njumps"}, false},
		{"a", []string{"foxjumps"}, true},
		{"wide", []string{"absent"}, false},
		{"empty", []string{"absent"}, true},
	} {
		text := p.Text(p.stamp(c.name))
		if text == nil {
			t.Fatalf("nothing is known of %s", c.name)
		}
		if got := text.Lacks(index.NewQuery(c.texts)); got != c.want {
			t.Errorf("%s lacks %q: %v, want %v", c.name, c.texts, got, c.want)
		}
	}
	if !p.Text(p.stamp("binary")).Binary {
		t.Error("a binary file is not known to be binary")
	}
}

// TestNeverLacksWhatIsThere asks for parts of random texts.
func TestNeverLacksWhatIsThere(t *testing.T) {
	p := newPlace(t, 1<<24)
	p.skipUnlessIndexed()
	r := rand.New(rand.NewPCG(7, 7))
	texts := map[string]string{}
	for i := range 50 {
		var b strings.Builder
		for range 1 + r.IntN(3000) {
			b.WriteByte(byte(1 + r.IntN(255)))
		}
		name := fmt.Sprintf("f%d", i)
		texts[name] = b.String()
		p.put(name, b.String())
	}
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	p.learn(names...)
	for name, text := range texts {
		known := p.Text(p.stamp(name))
		if known == nil {
			t.Fatalf("nothing is known of %s", name)
		}
		for range 200 {
			from := r.IntN(len(text))
			part := text[from:min(len(text), from+1+r.IntN(20))]
			if known.Lacks(index.NewQuery([]string{part})) {
				t.Fatalf("%s lacks %q, which it has", name, part)
			}
		}
	}
}

func TestChangedFilesAreUnknown(t *testing.T) {
	p := newPlace(t, 1<<20)
	p.skipUnlessIndexed()
	for name, change := range map[string]func(file string) error{
		"written":  func(file string) error { return os.WriteFile(file, []byte("beta"), 0o644) },
		"same":     func(file string) error { return os.WriteFile(file, []byte("abcde"), 0o644) },
		"replaced": func(file string) error { return os.Rename(p.put("new", "abcde"), file) },
		"times put back": func(file string) error {
			info, err := os.Stat(file)
			if err == nil {
				err = os.WriteFile(file, []byte("vwxyz"), 0o644)
			}
			if err == nil {
				err = os.Chtimes(file, info.ModTime(), info.ModTime())
			}
			return err
		},
		"mode":    func(file string) error { return os.Chmod(file, 0o600) },
		"linked":  func(file string) error { return os.Link(file, file+" again") },
		"mapping": func(file string) error { return throughMapping(file) },
	} {
		file := p.put(name, "abcde")
		p.learn(name)
		if p.Text(p.stamp(name)) == nil {
			t.Fatalf("%s: nothing is known before the change", name)
		}
		if err := change(file); err != nil {
			t.Fatal(err)
		}
		if p.Text(p.stamp(name)) != nil {
			t.Errorf("%s: the file is known after the change", name)
		}
	}
}

func throughMapping(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(memory, "vwxyz")
	return unix.Munmap(memory)
}

// TestMappedFilesAreNotRemembered: a page that was written once is written again without a trace.
func TestMappedFilesAreNotRemembered(t *testing.T) {
	p := newPlace(t, 1<<20)
	p.skipUnlessIndexed()
	f, err := os.OpenFile(p.put("mapped", "abcde"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	copy(memory, "first")
	p.learn("mapped", "probe")
	if p.Text(p.stamp("mapped")) != nil {
		t.Error("a file that is mapped for writing is remembered")
	}
	if p.Text(p.stamp("probe")) == nil {
		t.Error("the file beside it is not")
	}
}

func TestListing(t *testing.T) {
	p := newPlace(t, 1<<20)
	p.skipUnlessIndexed()
	p.put("b", "")
	read := func() *index.Listing {
		dir, err := os.Open(p.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		now := p.stamp(".")
		if known := p.Listing(now); known != nil {
			return known
		}
		reading := p.Read(int(dir.Fd()), now)
		entries, err := dir.ReadDir(-1)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			reading.Add([]index.Entry{{Name: e.Name(), Type: e.Type()}})
		}
		reading.Keep()
		return nil
	}
	if first, second := read(), read(); first != nil || second != nil {
		t.Error("a directory that has just changed is known")
	}
	known := read()
	for known == nil && t.Context().Err() == nil { // until it has settled
		known = read()
	}
	if known == nil || !known.Has("b") || !known.Has("probe") || known.Has("c") {
		t.Fatalf("the directory is known as %+v", known)
	}
	p.put("c", "")
	if read() != nil {
		t.Error("the directory is known after a file was made in it")
	}
}

func TestLimits(t *testing.T) {
	p := newPlace(t, 300)
	p.skipUnlessIndexed()
	p.put("a", strings.Repeat("abcdefghijklmnopqrstuvwxyz0123456789", 9))
	p.put("b", strings.Repeat("zyxwvutsrqponmlkjihgfedcba9876543210", 9))
	p.learn("a", "b")
	if held := p.set.Held(); held.Files != 1 || held.Bytes > p.set.Limit() {
		t.Errorf("with room for one of two files it holds %+v", held)
	}
	if p.set.Forget(time.Hour) != 0 {
		t.Error("what was just used was dropped")
	}
	if dropped := p.set.Forget(0); dropped == 0 || p.set.Held() != (index.Held{}) {
		t.Errorf("%d bytes were dropped, and %+v is left", dropped, p.set.Held())
	}
	if index.NewSet(0).Of("one") != nil {
		t.Error("a set without room remembers")
	}
}
