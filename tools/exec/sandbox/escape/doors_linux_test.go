// Tries every door of the sandbox in each tier, as root and as a user without rights, and holds what is open against
// the table of what may be.

package escape_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/sandbox/escape"
	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

var update = flag.Bool("update", false, "write the table of open doors into docs/security.md")

// nobody is a user without any rights, and without processes other than this test's: the kernel counts all of a user's against
// his limit, and other tests start more and fewer of them meanwhile.
var nobody = 1<<20 + os.Getpid()

// A way is one of being confined.
type way struct {
	name   string
	tier   sandbox.Tier
	strict bool
}

var ways = []way{{"full", sandbox.Full, false}, {"fast", sandbox.Fast, true}, {"fallback", sandbox.Fast, false}}

// The limits are below the bounds, and both are small: the bombs would make no other point with more. Numbers of processes
// are used again late, so that a limit by them counts up to 300 too many.
var (
	limits = sandbox.Limits{Processes: 256, OpenFiles: 1024, Memory: 192 << 20, FileSize: 1 << 30}
	bounds = scene.Bounds{Processes: 700, Files: 4096, Memory: 320 << 20, FileSize: 6 << 30, Filled: 64 << 20}
)

// A run is what was seen of all doors in one way, by one user.
type run struct {
	way   way
	uid   int
	doors []escape.Door
}

func TestDoors(t *testing.T) {
	users := []int{0, nobody}
	if os.Geteuid() != 0 {
		users = []int{os.Geteuid()}
	}
	var runs []run
	for _, w := range ways {
		for _, uid := range users {
			t.Run(fmt.Sprintf("%s as %d", w.name, uid), func(t *testing.T) {
				r := run{w, uid, w.try(t, uid)}
				t.Log("\n" + escape.Table(r.doors...))
				r.compare(t)
				runs = append(runs, r)
			})
		}
	}
	for _, w := range ways {
		seen := slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return r.way != w })
		if len(seen) < len(users) {
			continue // skipped, or not asked for
		}
		for _, o := range table {
			o.verify(t, seen)
		}
	}
}

// try lays a scene and has the probe try it.
func (w way) try(t *testing.T, uid int) []escape.Door {
	t.Helper()
	s := escape.Lay(t, "", uid)
	s.Bounds = bounds
	if os.Geteuid() != 0 { // root's are not counted by user, and nobody has none
		s.Bounds.Processes += threads(uid)
	}
	st := newStarter(t, s)
	temp := filepath.Join(st.private, "tmp")
	check(t, os.Mkdir(temp, 0o700))
	check(t, os.Chown(temp, uid, -1))
	caches := filepath.Join(st.private, "caches")
	for _, door := range s.Doors(scene.Caches) {
		for _, name := range sandbox.LayerFolders() {
			check(t, os.MkdirAll(filepath.Join(caches, scene.Slug(door), name), 0o755))
		}
	}
	check(t, filepath.WalkDir(caches, func(path string, _ os.DirEntry, err error) error { return errors.Join(err, os.Chown(path, uid, -1)) }))
	return escape.Run(t, s, func(argv, env []string, dir string) (string, error) {
		if w.tier == sandbox.Fast { // where /tmp stays the machine's
			env = append(env, "TMPDIR="+temp)
		}
		o := order{Home: st.private, Policy: w.policy(s, temp, caches), Tier: w.tier, Argv: argv, Env: env, Dir: dir, Unbound: w.tier == sandbox.Fast}
		o.Beside = w.beside(s, temp, caches)
		if !w.strict {
			o.Roots = s.Roots()
		}
		return st.run(t, o)
	})
}

// threads returns how many threads of the user there are: the kernel counts those of other tests as well.
func threads(uid int) (count int) {
	files, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == uid {
			count++
		}
	}
	return count
}

// beside are the processes of other calls: one of another session, and one that an earlier call of this session has left running,
// which was allowed to write outside.
func (w way) beside(s *escape.Scene, temp, caches string) (list []beside) {
	full := way{"full", sandbox.Full, false}
	for dir, argv := range s.Others() {
		b := beside{Policy: full.policy(s, temp, caches), Argv: argv, Dir: s.Outside, Own: dir}
		b.Policy.Session = "other"
		if dir == s.Left {
			if w.name == "fallback" { // an earlier call was confined as this one is
				b.Policy = w.policy(s, temp, caches)
			}
			b.Policy.Session = session
			b.Policy.Places = append(b.Policy.Places, sandbox.Place{Path: s.Outside, Access: sandbox.Write})
		}
		list = append(list, b)
	}
	return list
}

// session is the probe's.
const session = "own"

// policy is what a daemon would make for a call in the scene, with temp as its /tmp and with caches for what it writes to some.
func (w way) policy(s *escape.Scene, temp, caches string) sandbox.Policy {
	p := sandbox.Policy{Tier: w.tier, Strict: w.strict, Limits: limits, Session: session}
	p.Limits.Processes += uint64(s.Bounds.Processes - bounds.Processes)
	put := func(path string, access sandbox.Access) {
		p.Places = append(p.Places, sandbox.Place{Path: path, Access: access})
	}
	p.Places = append(p.Places, sandbox.Place{Path: "/tmp", Access: sandbox.Write, Source: temp})
	for _, path := range s.Hidden() {
		put(path, sandbox.Hidden)
	}
	put(s.Outputs, sandbox.Read)
	for _, door := range s.Doors(scene.Temporary) {
		put(filepath.Join(s.Shown, scene.Slug(door), "shown"), sandbox.Read)
		put(filepath.Join(s.Shown, scene.Slug(door), "shown-dir"), sandbox.Read)
	}
	for _, door := range s.Doors(scene.Opened) {
		if !w.strict {
			put(filepath.Join(s.Outside, scene.Slug(door), "dir"), sandbox.Write)
		}
	}
	for _, door := range s.Doors(scene.Caches) {
		if w.tier == sandbox.Full {
			slug := scene.Slug(door)
			p.Places = append(p.Places, sandbox.Place{Path: filepath.Join(s.Outside, slug), Access: sandbox.Write, Above: filepath.Join(caches, slug)})
		}
	}
	for _, root := range s.Roots() {
		if w.strict {
			put(root, sandbox.Read)
			continue
		}
		put(root, sandbox.Write)
		for _, path := range s.Protected() {
			if !strings.HasPrefix(path, root+"/") {
				continue
			}
			if _, err := os.Lstat(path); err != nil {
				p.Absent = append(p.Absent, path)
				continue
			}
			put(path, sandbox.Read)
			if above := filepath.Dir(path); above != root { // what is a place cannot be moved away
				put(above, sandbox.Write)
			}
		}
	}
	return p
}

// compare holds what was seen against what may be.
func (r run) compare(t *testing.T) {
	t.Helper()
	for _, d := range r.doors {
		must := d.MustOpen() && (!r.way.strict || !d.WritableRoot())
		switch {
		case d.Open == must || r.explained(d):
		case d.Open:
			t.Errorf("%s: %q is open, and no reason is given in the table: %s; %s", d.Group, d.Name, d.Inside, d.Seen)
		default:
			t.Errorf("%s: %q is shut, and programs need it: %s", d.Group, d.Name, d.Inside)
		}
	}
}

// explained reports whether the table has the door as it was found.
func (r run) explained(d escape.Door) bool {
	return slices.ContainsFunc(table, func(o row) bool { return o.names(d.Name) && o.speaksOf(r) && o.shut != d.Open })
}

// verify reports the doors of a row that differ from it in any of the runs, which are of one way.
func (o row) verify(t *testing.T, runs []run) {
	t.Helper()
	runs = slices.DeleteFunc(slices.Clone(runs), func(r run) bool { return !o.speaksOf(r) })
	if o.where != "" || len(runs) == 0 {
		return
	}
	for _, name := range o.doors {
		so := func(r run) bool {
			d, ok := escape.Find(r.doors, name)
			return ok && d.Open != o.shut
		}
		if !slices.ContainsFunc(runs, so) {
			t.Errorf("the table has %q in %s, where it is not so", name, runs[0].way.name)
		}
	}
}

// docs/security.md shows the tables.
func TestDocument(t *testing.T) {
	const begin, end = "<!-- doors -->\n", "<!-- end -->"
	path := filepath.FromSlash("../../../../docs/security.md")
	content, err := os.ReadFile(path)
	check(t, err)
	before, rest, ok := strings.Cut(string(content), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	want := document()
	if *update {
		check(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
		return
	}
	if shown != want {
		t.Errorf("%s does not show the table of open doors: run the test with -update\n%s", path, want)
	}
}

func document() string {
	var b strings.Builder
	list := func(shut bool) {
		fmt.Fprint(&b, "\n| door | tier | why |\n|---|---|---|\n")
		for _, o := range table {
			if o.shut == shut {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(o.doors, "; "), o.tier(), o.why)
			}
		}
		fmt.Fprint(&b, "\n")
	}
	list(false)
	fmt.Fprint(&b, "Shut, though programs may want it:\n")
	list(true)
	return b.String()
}
