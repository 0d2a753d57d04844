package grep

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/tooltest"
)

// This file compares a search that remembers with one that does not, and with rg itself, on a tree that changes between
// the queries in every way that could go unnoticed.

// A changing is a repository that is being changed.
type changing struct {
	t    *testing.T
	rand *rand.Rand
	root string
	// mapped is a file mapped for writing; nil: none is.
	mapped []byte
}

var vocabulary = []string{"alpha", "Beta", "gamma_ray", "needle", "Needle", "NEEDLE", "return", "func", "x1", "kilo", "ßtraße", "élan", "\u212aelvin", "a.b", "zeta9"}

// text returns lines of words, often of a length that other texts have too.
func (c *changing) text() []byte {
	var b strings.Builder
	for range 1 + c.rand.IntN(6) {
		for range 1 + c.rand.IntN(4) {
			b.WriteString(vocabulary[c.rand.IntN(len(vocabulary))] + " ")
		}
		b.WriteByte('\n')
	}
	switch c.rand.IntN(12) {
	case 0:
		return []byte("\x00" + b.String())
	case 1: // UTF-16
		wide := []byte{0xff, 0xfe}
		for _, r := range b.String() {
			wide = append(wide, byte(r), byte(r>>8))
		}
		return wide
	case 2:
		return []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
	}
	return []byte(b.String())
}

func (c *changing) dir() string {
	return filepath.Join(c.root, []string{"", "src", "src/deep/er", "lib", "lib/.hidden", "build", "odd dir"}[c.rand.IntN(7)])
}

func (c *changing) name() string {
	return filepath.Join(c.dir(), fmt.Sprintf("f%d.%s", c.rand.IntN(12), []string{"go", "txt", "log", "bin"}[c.rand.IntN(4)]))
}

// some returns a file that exists.
func (c *changing) some() string {
	var files []string
	_ = filepath.WalkDir(c.root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err == nil && e.Name() == ".git":
			return fs.SkipDir
		case err == nil && e.Type().IsRegular() && e.Name()[0] == 'f':
			files = append(files, path)
		}
		return nil
	})
	if len(files) == 0 {
		file := filepath.Join(c.root, "f0.go")
		c.must(os.WriteFile(file, c.text(), 0o644))
		return file
	}
	return files[c.rand.IntN(len(files))]
}

func (c *changing) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *changing) git(args ...string) {
	c.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "HOME="+c.root, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// put writes a file where there may be anything.
func (c *changing) put(file string, text []byte) {
	_ = os.RemoveAll(file)
	c.must(os.MkdirAll(filepath.Dir(file), 0o755))
	c.must(os.WriteFile(file, text, 0o644))
}

// changes are the ways in which the tree changes.
var changes = map[string]func(*changing){
	"create":  func(c *changing) { c.put(c.name(), c.text()) },
	"delete":  func(c *changing) { c.must(os.Remove(c.some())) },
	"rewrite": func(c *changing) { c.must(os.WriteFile(c.some(), c.text(), 0o644)) },
	"rename": func(c *changing) {
		from, to := c.some(), c.name()
		if from != to {
			_ = os.RemoveAll(to)
			c.must(os.MkdirAll(filepath.Dir(to), 0o755))
			c.must(os.Rename(from, to))
		}
	},
	"replace": func(c *changing) {
		file := c.some()
		c.must(os.WriteFile(file+".new", c.text(), 0o644))
		c.must(os.Rename(file+".new", file))
	},
	"same size and time": func(c *changing) { c.sameSizeAndTime(c.some()) },
	"mapping":            func(c *changing) { c.throughMapping(c.some()) },
	"mapping again":      func(c *changing) { c.throughMapping(c.some()) },
	"hard link": func(c *changing) {
		file, other := c.some(), c.name()
		if file != other {
			_ = os.RemoveAll(other)
			c.must(os.MkdirAll(filepath.Dir(other), 0o755))
			c.must(os.Link(file, other))
			c.must(os.WriteFile(other, c.text(), 0o644))
		}
	},
	"link": func(c *changing) {
		at := c.name()
		_ = os.RemoveAll(at)
		c.must(os.MkdirAll(filepath.Dir(at), 0o755))
		c.must(os.Symlink(c.some(), at))
	},
	"directory renamed": func(c *changing) {
		from, to := filepath.Join(c.root, "lib"), filepath.Join(c.root, "moved")
		if os.Rename(from, to) != nil {
			_ = os.Rename(to, from)
		}
	},
	"directory instead of file": func(c *changing) {
		file := c.some()
		c.must(os.Remove(file))
		c.put(filepath.Join(file, "f1.txt"), c.text())
	},
	"ignore file": func(c *changing) {
		file := filepath.Join(c.dir(), []string{".gitignore", ".ignore", ".rgignore"}[c.rand.IntN(3)])
		lines := []string{"*.log\n", "build/\n", "!f1.*\n", "/src/deep\n", "f[2-5].*\n", ""}
		c.put(file, []byte(lines[c.rand.IntN(len(lines))]+lines[c.rand.IntN(len(lines))]))
	},
	"exclude": func(c *changing) {
		c.put(filepath.Join(c.root, ".git/info/exclude"), []byte([]string{"", "*.txt\n", "odd dir\n"}[c.rand.IntN(3)]))
	},
	"branch": func(c *changing) {
		c.git("add", "-A", "-f")
		c.git("commit", "-q", "--allow-empty", "-m", "state")
		c.git("checkout", "-q", "-B", "other", "HEAD~"+fmt.Sprint(c.rand.IntN(2)))
	},
}

func (c *changing) sameSizeAndTime(file string) {
	info, err := os.Stat(file)
	c.must(err)
	text := c.text()
	for int64(len(text)) < info.Size() {
		text = append(text, c.text()...)
	}
	c.must(os.WriteFile(file, text[:info.Size()], 0o644))
	c.must(os.Chtimes(file, info.ModTime(), info.ModTime()))
}

// throughMapping changes a file through a mapping that may have lasted for many changes. Then its times do not change.
func (c *changing) throughMapping(file string) {
	if c.mapped != nil && c.rand.IntN(6) == 0 {
		c.must(unix.Munmap(c.mapped))
		c.mapped = nil
	}
	if c.mapped == nil {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		c.must(err)
		defer f.Close()
		c.must(f.Truncate(200))
		c.mapped, err = unix.Mmap(int(f.Fd()), 0, 200, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		c.must(err)
	}
	for i := range c.mapped {
		c.mapped[i] = '\n'
	}
	copy(c.mapped, c.text())
}

// query returns an input, and whether rg's own walk has the same idea of which files are meant.
func (c *changing) query() (in Input, plain bool) {
	word := func() string { return vocabulary[c.rand.IntN(len(vocabulary))] }
	patterns := []string{word(), word() + "|" + word(), word() + `\s+\w+`, `\b` + word(), "(?i)" + word(), `[a-z]+9`, "^" + word(), string([]rune(word())[:2]), "(" + word() + ")+ ", "absent" + word(), `(?:` + word() + "|" + word() + ") " + word()}
	in = Input{Pattern: patterns[c.rand.IntN(len(patterns))], OutputMode: []string{modeContent, modeFiles, modeCount}[c.rand.IntN(3)], IgnoreCase: c.rand.IntN(4) == 0}
	all := int64(0)
	in.HeadLimit, plain = &all, true
	switch c.rand.IntN(8) {
	case 0:
		in.Glob, plain = []string{"*.go", "!*.txt", "src/**"}[c.rand.IntN(3)], false
	case 1:
		in.Type, plain = "go", false
	case 2:
		one := int64(1)
		in.Around, plain = &one, false
	case 3:
		in.Multiline, plain = true, false
	case 4:
		some := int64(1 + c.rand.IntN(5))
		in.HeadLimit, in.Offset, plain = &some, int64(c.rand.IntN(5)), false
	case 5:
		if dir := c.dir(); dir != c.root {
			if _, err := os.Stat(dir); err == nil {
				in.Path, plain = dir, false
			}
		}
	}
	return in, plain
}

// ripgrep returns the lines that rg prints for the input, sorted.
func (c *changing) ripgrep(in Input) []string {
	args := []string{"--no-config", "--hidden", "--glob=!.git", "--color=never", "--no-heading", "--with-filename", "--regexp=" + in.Pattern}
	switch in.OutputMode {
	case modeContent:
		args = append(args, "--line-number")
	case modeFiles:
		args = append(args, "--files-with-matches")
	case modeCount:
		args = append(args, "--count")
	}
	if in.IgnoreCase {
		args = append(args, "--ignore-case")
	}
	cmd := exec.Command("rg", append(args, c.root)...)
	cmd.Env = []string{"HOME=" + c.root, "LC_ALL=C.UTF-8"}
	cmd.Dir = c.root
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) {
		c.t.Errorf("rg: %v %s", err, exit.Stderr)
	}
	lines := sortedLines(strings.ReplaceAll(string(out), "\r\n", "\n"))
	for i, line := range lines { // as Grep shows what is no text
		lines[i] = strings.ReplaceAll(strings.ToValidUTF8(line, "\ufffd"), "\x00", "\ufffd")
	}
	slices.Sort(lines)
	return lines
}

func sortedLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(lines)
	return lines
}

// entriesOf returns the lines of a result without its remarks, sorted.
func entriesOf(f Found) (lines []string) {
	for _, l := range f.Lines {
		lines = append(lines, fmt.Sprintf("%s:%d:%s", l.Path, l.Line, l.Text))
	}
	for i, file := range f.Files {
		if f.Mode == modeFiles {
			lines = append(lines, file)
		} else if f.Mode == modeCount {
			lines = append(lines, fmt.Sprintf("%s:%d", file, f.Counts[i]))
		}
	}
	slices.Sort(lines)
	return lines
}

// differs runs one query in all three ways and returns what differs.
func (c *changing) differs(in Input, plain bool, files *tooltest.Files, box *sandbox.Box, remembered *index.Index) string {
	input, err := json.Marshal(in)
	if err != nil {
		return err.Error()
	}
	ask := func(x *index.Index) (string, Found, error) {
		env := files.Env()
		env.Box, env.Index = box, x
		return call(context.Background(), Tool(), env, string(input))
	}
	text, found, err := ask(remembered)
	wantText, wantFound, wantErr := ask(nil)
	if diff := cmp.Diff(wantText, text) + cmp.Diff(wantFound, found); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
		return fmt.Sprintf("%s\nwithout memory (-) and with it (+), errors %v and %v:\n%s", input, wantErr, err, diff)
	}
	if plain && err == nil {
		if diff := cmp.Diff(c.ripgrep(in), entriesOf(found)); diff != "" {
			return fmt.Sprintf("%s\nrg (-) and Grep (+):\n%s", input, diff)
		}
	}
	return ""
}

func TestMemoryIsNoticedByNobody(t *testing.T) {
	_, runner := onlyRipgrep(t)
	box := &sandbox.Box{Runner: runner}
	rounds, each := tooltest.Times(50, 250), 8
	seed := uint64(time.Now().UnixNano())
	c := &changing{t: t, rand: rand.New(rand.NewPCG(seed, 1)), root: t.TempDir()}
	c.git("init", "-q", "-b", "main")
	for range 60 {
		c.put(c.name(), c.text())
	}
	for range 2 {
		c.git("add", "-A", "-f")
		c.git("commit", "-q", "--allow-empty", "-m", "begin")
	}
	files := tooltest.NewFiles(t, c.root)
	set := index.NewSet(16 << 20)
	set.Settle = 30 * time.Millisecond
	defer set.Close()
	var ways []string
	for way := range changes {
		ways = append(ways, way)
	}
	slices.Sort(ways)
	var history []string
	for round := range rounds {
		way := ways[c.rand.IntN(len(ways))]
		history = append(history, way)
		changes[way](c)
		var all sync.WaitGroup
		differences := make([]string, each)
		for i := range each {
			in, plain := c.query()
			all.Go(func() { differences[i] = c.differs(in, plain, files, box, set.Of("one")) })
		}
		all.Wait()
		for _, diff := range differences {
			if diff != "" {
				t.Fatalf("seed %d, round %d, after %q:\n%s", seed, round, history[max(0, len(history)-8):], diff)
			}
		}
		if round%4 == 0 {
			set.Wait()
		}
	}
	if held := set.Held(); held.Files == 0 || held.Directories == 0 {
		t.Errorf("nothing was remembered: %+v", held)
	}
}
