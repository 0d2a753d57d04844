package shell

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A cell runs scripts one by one in a place of their own: no network, no other
// processes, a read-only system, and a small tree in memory with a repository
// and with names and settings that would like to be more than that. It is this
// test binary once more, as the first process of its namespaces; what it starts
// ends with it.
type cell struct {
	ask    *json.Encoder
	answer *json.Decoder
	ran    int
}

// asked is what a cell is to run.
type asked struct {
	Script  string
	Environ map[string]string
}

// found is what a script has left behind.
type found struct {
	Changes []string // of files, exported variables and processes; a line each
	Dir     string   // where the shell ended, if elsewhere than it started
	Trouble string   // why the cell cannot go on
}

// cellVariable names the directory of a cell in its environment.
const cellVariable = "TOOLD_TEST_CELL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(cellVariable); dir != "" {
		os.Exit(cellMain(dir))
	}
	os.Exit(m.Run())
}

func openCell(t testing.TB) *cell {
	t.Helper()
	for _, program := range []string{"bash", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no script can be run: install %s", program)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd := exec.Command(self)
	cmd.Env = []string{cellVariable + "=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	cmd.Stderr = &complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no script is run, since no namespaces can be made: %v. Allow user namespaces (sysctl user.max_user_namespaces), or run the test as root.", err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	c := &cell{ask: json.NewEncoder(in), answer: json.NewDecoder(bufio.NewReader(out))}
	var ready found
	if err := c.answer.Decode(&ready); err != nil {
		t.Fatalf("the cell does not start: %v\n%s", err, &complaints)
	}
	if ready.Trouble != "" {
		t.Skipf("no script is run, since the cell cannot be closed: %s. Allow mounting in user namespaces, or run the test as root.", ready.Trouble)
	}
	return c
}

// run runs a script and tells what it has left behind.
func (c *cell) run(t testing.TB, script string, environ map[string]string) (f found) {
	t.Helper()
	c.ran++
	if err := c.ask.Encode(asked{script, environ}); err != nil {
		t.Fatalf("the cell has ended before %q: %v", script, err)
	}
	if err := c.answer.Decode(&f); err != nil || f.Trouble != "" {
		t.Fatalf("the cell has ended in %q: %v %s", script, err, f.Trouble)
	}
	return f
}

// cellMain answers scripts on standard input, each with what it has left.
func cellMain(dir string) (code int) {
	answer := json.NewEncoder(os.Stdout)
	r, err := newRoom(dir)
	if err != nil {
		_ = answer.Encode(found{Trouble: err.Error()})
		return 1
	}
	_ = answer.Encode(found{})
	ask := json.NewDecoder(os.Stdin)
	for {
		var script asked
		if err := ask.Decode(&script); err != nil {
			return 0
		}
		f, err := r.run(script)
		if err != nil {
			f.Trouble = err.Error()
		}
		if err := answer.Encode(f); err != nil {
			return 0
		}
	}
}

// A room is a cell from the inside.
type room struct {
	dir     string // what is compared
	prelude string
	exports string // as a shell that does nothing has them
	before  map[string]string
}

// limit is how long a script may run.
const limit = 2 * time.Second

// newRoom makes all that is mounted read-only, and the tree again. It needs
// nothing that a later script could change.
func newRoom(dir string) (*room, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return nil, fmt.Errorf("making the system read-only: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m"); err != nil {
		return nil, fmt.Errorf("mounting a tree in memory: %w", err)
	}
	// Where the kernel does not let a proc of one's own be mounted, that of the machine is seen, which nothing here writes to.
	_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	r := &room{dir: filepath.Join(dir, "cell"), prelude: filepath.Join(dir, "prelude")}
	prelude := "unset BASH_ENV\ntrap 'builtin pwd -P >&198; builtin declare -px >&198' EXIT\nexec 198>&3 3>&-\n"
	if err := os.WriteFile(r.prelude, []byte(prelude), 0o600); err != nil {
		return nil, err
	}
	if err := r.furnish(); err != nil {
		return nil, err
	}
	_, report, err := r.bash(asked{Script: ":"})
	if err != nil {
		return nil, err
	}
	_, r.exports = told(report)
	r.before, err = r.snapshot()
	return r, err
}

// furnish makes the tree: files that are named like flags, hold flags and
// commands, and a repository with settings that start a program.
func (r *room) furnish() error {
	files := map[string]string{
		"a.txt": "a\nb 1\nsub\n", "b c.txt": "x,y\n1,2\n", "list": "a.txt\n-o\nout\n--output=out\n-delete\n$(touch out)\n", "sub/x.go": "package x\n",
		"bin.dat": "\x00\x01a\xff", "-delete": "", "--output=out": "", "-exec": "", "name": "touch out\n", ".rgignore": "", "sub/.info": "x\n\ty\n",
	}
	for _, name := range []string{"pwn", "ls", "cat", "git", "gzip", "diff"} {
		files[name] = "#!/bin/sh\ntouch out\n"
	}
	for name, text := range files {
		path := filepath.Join(r.dir, "tree", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(r.dir, name), 0o700); err != nil {
			return err
		}
	}
	script := `set -e; git init -q -b main; git config user.name a; git config user.email a@b; git add a.txt sub 'b c.txt'; git commit -qm one
		echo c >> a.txt; git commit -qam two; git tag v1; echo d >> a.txt; git stash -q; git remote add origin ../absent
		printf '#!/bin/sh\ntouch out\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change
		for k in core.fsmonitor core.pager core.sshCommand gpg.program core.askPass pager.log credential.helper; do git config $k "$PWD/pwn"; done
		git config log.showSignature true; rm -f out; touch -d '2 hours ago' sub/x.go`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = filepath.Join(r.dir, "tree"), []string{"PATH=/usr/bin:/bin", "HOME=" + filepath.Join(r.dir, "home"), "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("furnishing: %w: %s", err, out)
	}
	return nil
}

// run runs a script and compares.
func (r *room) run(script asked) (f found, err error) {
	left, report, err := r.bash(script)
	if err != nil {
		return f, err
	}
	f.Changes = left
	if dir, exports := told(report); dir != "" { // without: it was stopped
		if kept(exports, script.Environ) != kept(r.exports, script.Environ) {
			f.Changes = append(f.Changes, "exports "+exports)
		}
		if dir != filepath.Join(r.dir, "tree") {
			f.Dir = dir
		}
	}
	after, err := r.snapshot()
	if err != nil {
		return f, err
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before, ok := r.before[name]; !ok {
			f.Changes = append(f.Changes, "made "+name)
		} else if before != after[name] {
			f.Changes = append(f.Changes, fmt.Sprintf("%s: %q, was %q", name, after[name], before))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.before)) {
		if _, ok := after[name]; !ok {
			f.Changes = append(f.Changes, "removed "+name)
		}
	}
	if len(f.Changes) > 0 { // the next one finds everything as it was
		if err := os.RemoveAll(r.dir); err != nil {
			return f, err
		}
		if err := r.furnish(); err != nil {
			return f, err
		}
		r.before, err = r.snapshot()
	}
	return f, err
}

// told takes a report apart: where the shell ended, and what it exports but for
// what is about itself.
func told(report string) (dir, exports string) {
	dir, report, _ = strings.Cut(report, "\n")
	own := []string{"declare -x PWD", "declare -x OLDPWD", "declare -x SHLVL", "declare -x _"}
	var lines []string
	for _, line := range strings.Split(report, "\n") {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(own, name) {
			lines = append(lines, line)
		}
	}
	return dir, strings.Join(lines, "\n")
}

// kept are the exports without those that the script was given.
func kept(exports string, given map[string]string) string {
	var lines []string
	for declaration := range strings.SplitSeq("\n"+exports, "\ndeclare -x ") {
		if name, _, _ := strings.Cut(declaration, "="); given[name] == "" {
			lines = append(lines, strings.TrimSpace(declaration))
		}
	}
	return strings.Join(lines, "\n")
}

// bash runs a script as a read-only call does. left are the processes that go
// on after it, but for those of a substitution, which nobody waits for.
func (r *room) bash(script asked) (left []string, report string, err error) {
	tree := filepath.Join(r.dir, "tree")
	in, out, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	cmd := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", script.Script)
	cmd.Dir, cmd.ExtraFiles = tree, []*os.File{out}
	cmd.Env = append(GitHardening(), "HOME="+filepath.Join(r.dir, "home"), "TMPDIR="+filepath.Join(r.dir, "tmp"), "PATH=/usr/bin:/bin",
		"PWD="+tree, "TERM=dumb", "PAGER=cat", "BASH_ENV="+r.prelude)
	for name, value := range script.Environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := cmd.Start(); err != nil {
		return nil, "", errors.Join(err, out.Close())
	}
	_ = out.Close()
	stop := time.AfterFunc(limit, func() { _ = unix.Kill(-1, unix.SIGKILL) })
	_ = cmd.Wait() // most scripts are nonsense and fail
	if unix.Kill(-1, 0) == nil && !strings.Contains(script.Script, "<(") {
		left = r.leftovers()
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !stop.Stop() {
		left = nil
	}
	text, err := io.ReadAll(in)
	return left, string(text), err
}

// leftovers names processes that are not about to end: the stages of a pipe may
// do so a little after the shell.
func (r *room) leftovers() (left []string) {
	ended := make(chan struct{})
	stop := time.AfterFunc(limit/2, func() {
		if unix.Kill(-1, unix.SIGKILL) == nil {
			left = []string{"a process goes on"}
		}
		close(ended)
	})
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if !stop.Stop() {
		<-ended
	}
	return left
}

// snapshot returns each path of the cell with all that is seen of it but the time
// of the last reading. A file of another content has another time of the last change.
func (r *room) snapshot() (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if d.Type()&fs.ModeSymlink != 0 {
			if text, err = os.Readlink(path); err != nil {
				return err
			}
		}
		stat := info.Sys().(*syscall.Stat_t)
		name, _ := filepath.Rel(r.dir, path)
		if name == "tmp" { // programs may put there what is too large, and take it away again
			return nil
		}
		all[name] = fmt.Sprint(info.Mode(), info.Size(), stat.Ino, stat.Uid, stat.Gid, stat.Mtim, stat.Ctim, text)
		return nil
	})
	return all, err
}
