package pipeline

// What the commands of a call that only reads need beside the paths that they name: which file each command word leads to,
// the user's own configuration, and whether a list of places can hold all of it. It looks at the disk and starts nothing.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/repo"
	"github.com/toold/toold/tools/sandbox"
	"github.com/toold/toold/tools/shell"
	"github.com/toold/toold/tools/workspace"
)

// A reader is what was found out about the commands of a call that only reads.
type reader struct {
	// files are the user's own configuration that the commands read by themselves: real paths that exist.
	files []string
	// wide: the call reads more than its policy for the fast tier could list.
	wide bool
	// search is the PATH with which the commands run; empty: that of shell.ReadOnlyEnv.
	search string
	// ask says why a command word does not lead to a program that is known; empty: each does.
	ask string
}

// reader looks up what the read-only commands among those of the call need.
func (c *Call) reader(f *permission.Facts, env *tools.Env) (r reader) {
	s := c.search(f, env)
	for i := range f.Commands {
		command := &f.Commands[i]
		if !command.ReadOnly {
			continue
		}
		r.wide = r.wide || shell.ReadsWidely(command.Name)
		r.configured(s, shell.Configuration(command.Name))
		if command.Searched() {
			r.resolved(s, command.Name)
		}
	}
	if r.search = s.kept; r.ask != "" {
		r.search = s.own // whoever says yes says it to the program that was named
	}
	r.wide = r.wide || r.ask != "" || slices.ContainsFunc(f.Accesses, func(a permission.Access) bool { return isOwnProcess(a.Named) })
	return r
}

// A search is where command words and configuration are looked up.
type search struct {
	places    *workspace.Workspace
	git       *repo.Finder
	dir       string // the working directory
	environ   []string
	home      string // of the daemon's user; empty: not known
	own, kept string // the PATH of the session, and what a call that only reads has of it
	writable  []string
}

// search works out where to look. Where the full tier confines the call, all directories of PATH stay that calls cannot
// change: what a program below home belongs to (a language manager, a virtual environment) is in sight there, and nothing can
// be written or fetched, whatever the program does.
func (c *Call) search(f *permission.Facts, env *tools.Env) search {
	conf, places := c.rights.Confining, c.rights.Places
	s := search{places: places, git: conf.Git, dir: env.Dir, environ: env.Environ, home: c.rights.Anchors.Home, own: valueIn(env.Environ, "PATH")}
	s.writable = slices.Concat(places.Roots(), conf.Write, conf.Hidden, temps, []string{"/dev", conf.Temp, conf.Cache})
	s.kept = valueIn(shell.ReadOnlyEnv(env.Environ, s.home, places.Roots()), "PATH")
	if c.outside(f) || !c.fully() {
		return s
	}
	var dirs []string
	for _, dir := range filepath.SplitList(s.own) {
		if filepath.IsAbs(dir) && !s.changeable(dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) > 0 {
		s.kept = strings.Join(dirs, ":")
	}
	return s
}

func valueIn(environ []string, name string) (value string) {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// changeable reports whether a call may have put what is at the path, or where it leads: a place that calls can write, a
// temporary directory, what belongs to the daemon, or a file of another user.
func (s *search) changeable(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false // nothing is there
	}
	for _, path := range []string{filepath.Clean(path), real} {
		if slices.ContainsFunc(s.writable, func(dir string) bool { return dir != "" && workspace.Within(dir, path) }) {
			return true
		}
	}
	info, err := os.Stat(real)
	if err != nil || isSystems(real) {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid()
}

// find returns the file that bash would run for a command word; empty: there is none.
func (s *search) find(list, name string) string {
	for _, dir := range strings.Split(list, ":") {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(s.dir, dir)
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// resolved notes where a command word leads.
func (r *reader) resolved(s search, name string) {
	path := s.find(s.own, name)
	if path == "" {
		return
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil || s.find(s.kept, name) != path || s.changeable(path):
		r.ask = fmt.Sprintf("`%s` is %s in this session. Calls can write there, or it cannot be confined, so it may do more than read.", name, path)
	case !isSystems(path) || !isSystems(real):
		r.wide = true // what it belongs to lies around it
	}
}

// isSystems reports whether the path lies in what every confined program may read.
func isSystems(path string) bool {
	return slices.ContainsFunc(sandbox.SystemTrees, func(tree string) bool { return workspace.Within(tree, path) })
}

// gitConfigs are the configuration files of git among those that the table of programs names, and the first is git's alone.
var gitConfigs = []string{"~/.gitconfig", "$XDG_CONFIG_HOME/git/config"}

// configured notes files of the user's own configuration, as the table of programs names them.
func (r *reader) configured(s search, names []string) {
	if len(names) == 0 {
		return
	}
	if s.home == "" || s.home != valueIn(s.environ, "HOME") {
		r.wide = true // a call has set another home: it may name what it likes, and is shown no more than any
		return
	}
	for _, name := range names {
		for _, path := range s.expanded(name) {
			r.add(path)
			if slices.Contains(gitConfigs, name) {
				for _, named := range s.git.Opened(s.home, path) {
					r.add(named)
				}
			}
		}
	}
	if slices.Contains(names, gitConfigs[0]) {
		r.named(s)
	}
}

// named looks for what the repository's own configuration and the system's name outside the roots. The first may be
// somebody else's: nothing is opened for it that could not be seen anyhow.
func (r *reader) named(s search) {
	for _, path := range s.git.Opened(s.home, "/etc/gitconfig") {
		r.add(path)
	}
	own, ok := repo.Discover(s.dir)
	if !ok {
		return
	}
	configs := []string{filepath.Join(own.Common, "config"), filepath.Join(own.Dir, "config.worktree")}
	r.wide = r.wide || slices.ContainsFunc(s.git.Opened(s.home, configs...), func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && s.places.Place(real) == workspace.Outside && !slices.Contains(r.files, real)
	})
}

// expanded returns what a name of the table stands for. The directory of configuration is that of the daemon's own
// environment too, as long as the session's is the same.
func (s *search) expanded(name string) (paths []string) {
	if rest, ok := strings.CutPrefix(name, "~"); ok {
		return []string{s.home + rest}
	}
	rest := strings.TrimPrefix(name, "$XDG_CONFIG_HOME")
	paths = []string{s.home + "/.config" + rest}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) && dir == valueIn(s.environ, "XDG_CONFIG_HOME") {
		paths = append(paths, dir+rest)
	}
	return paths
}

// add notes a file if it exists.
func (r *reader) add(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(r.files, real) {
		r.files = append(r.files, real)
	}
}

// ownProcess are the files of /proc by which a process looks at itself, as far as reading them does nothing else.
var ownProcess = strings.Fields("status stat statm maps smaps smaps_rollup limits cgroup comm cmdline environ exe fd fdinfo io mounts mountinfo" +
	" mountstats ns net numa_maps oom_adj oom_score oom_score_adj personality sched schedstat wchan uid_map gid_map setgroups loginuid sessionid")

// isOwnProcess reports whether a path names what the kernel shows each process of itself. To the daemon the same name would
// be another file.
func isOwnProcess(path string) bool {
	switch {
	case path != filepath.Clean(path):
		return false
	case path == "/proc/mounts" || path == "/dev/fd":
		return true
	}
	if number, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok {
		return number != "" && strings.Trim(number, "0123456789") == ""
	}
	if rest, ok := strings.CutPrefix(path, "/proc/net/"); ok {
		return !strings.Contains(rest, "/")
	}
	for _, dir := range []string{"/proc/self/", "/proc/thread-self/"} {
		if rest, ok := strings.CutPrefix(path, dir); ok {
			return slices.Contains(ownProcess, rest)
		}
	}
	return false
}
