// What the commands of a call that only reads need beside the paths that they name: which file each command word leads to,
// whether that is an installed program and runs what it seems to, the user's own configuration, and whether a list of places can
// hold all of it. It looks at the disk and starts nothing.

package pipeline

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
)

// A reader is what was found out about the commands of a call that only reads.
type reader struct {
	// files are the user's own configuration that the commands read by themselves: real paths that exist.
	files []string
	// wide: the call reads more than its policy for the fast tier could list.
	wide bool
	// unknown are commands that do not count as read-only, by their index, each with the reason as a clause.
	unknown map[int]string
	// alone are those that only count in a call that is read-only as a whole and fully confined.
	alone []int
	// programs are the files that command words lead to, as long as the shell itself looks them up.
	programs map[string]string
}

// reader looks up what the read-only commands among those of the call need.
func (c *Call) reader(f *permission.Facts, env *tools.Env) reader {
	r := reader{unknown: map[int]string{}, programs: map[string]string{}}
	var s search
	if len(f.Commands) > 0 {
		s = c.search(f, env)
	}
	for i, command := range f.Commands {
		if !command.ReadOnly {
			continue
		}
		elsewhere := command.IsGit() && !slices.Equal(command.Dirs, []string{"."}) // what is named there is not looked for
		r.wide = r.wide || elsewhere || shell.ReadsWidely(command.Name) || command.Alone
		r.configured(s, command.Name)
		if command.Alone {
			r.alone = append(r.alone, i)
		}
		if why := r.resolved(s, &command); why != "" {
			r.unknown[shell.Outermost(f.Commands, i)] = why
		}
	}
	r.wide = r.wide || c.parsed.effects.Spills || slices.ContainsFunc(f.Accesses, func(a permission.Access) bool { return isOwnProcess(a.Named) })
	return r
}

// A search is where command words and configuration are looked up.
type search struct {
	*Rights
	dir      string // the working directory on the disk
	environ  []string
	list     []string // the directories of PATH, absolute
	writable []string
	confined bool // the full tier confines the call
}

// search works out where to look: in all of PATH, as the shell will.
func (c *Call) search(f *permission.Facts, env *tools.Env) search {
	conf, places := c.rights.Confining, c.rights.Places
	s := search{Rights: &c.rights, dir: places.Disk(env.Dir), environ: env.Environ, confined: !c.rights.outside(f) && conf.fully()}
	s.writable = slices.Concat(places.Roots(), conf.Write, conf.Hidden, temps, conf.ownDirs(), []string{"/dev"})
	for _, c := range conf.Caches {
		s.writable = append(s.writable, c.Path, c.Upper())
	}
	s.writable = slices.DeleteFunc(s.writable, func(dir string) bool { return dir == "" })
	for _, dir := range strings.Split(repo.Getenv(env.Environ, "PATH"), ":") { // an empty one is the working directory
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(repo.Getenv(env.Environ, "HOME"), rest)
		}
		s.list = append(s.list, shell.From(env.Dir, dir))
	}
	return s
}

// changeable reports whether a call may have put what is at the path, there or not, or what it leads to: it is a place that
// calls can write, a temporary directory, what belongs to the daemon, or of another user.
func (s *search) changeable(path string) bool {
	real := existing(path)
	if pathname.WithinAny(s.writable, filepath.Clean(path)) || pathname.WithinAny(s.writable, real) {
		return true
	}
	info, err := os.Stat(real)
	if err != nil || isSystems(real) {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid()
}

// existing returns where the path leads, or where the part of it leads that exists.
func existing(path string) string {
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil || dir == "/" {
			return real + strings.TrimPrefix(filepath.Clean(path), strings.TrimSuffix(dir, "/"))
		}
	}
}

// find returns the file that bash would run for a command word, and the directories that it
// searches before; empty: none.
func (s *search) find(name string) (path string, before []string) {
	for i, dir := range s.list {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(s.Places.Disk(path)); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, s.list[:i]
		}
	}
	return "", s.list
}

// resolved notes where a command word leads, or returns, as a clause, why it does not lead to a program of the table.
func (r *reader) resolved(s search, command *shell.Command) (why string) {
	path, before := command.Name, []string(nil)
	switch {
	case command.Searched():
		path, before = s.find(command.Name)
	case !command.NamesFile():
		return ""
	}
	if command.Alias != "" {
		before = s.list // git looks for a program of that name first
	}
	if command.SearchedByProgram() || command.Alias != "" {
		if i := slices.IndexFunc(before, s.changeable); i >= 0 {
			return fmt.Sprintf("another program looks for `%s`, first in %s, where calls can put one", cmp.Or(command.Alias, command.Name), before[i])
		}
	}
	if path == "" {
		return ""
	}
	path = shell.From(s.dir, path)
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err != nil || s.changeable(path):
		return fmt.Sprintf("`%s` is %s in this session, where calls can write, so it may do more than read", command.Name, path)
	case !s.confined && (shell.LooksAround(command.Name) || !installed(path, s.Anchors.Home) && !installed(real, s.Anchors.Home)):
		return fmt.Sprintf("`%s` is %s in this session, which nothing confines, so it may do more than read", command.Name, path)
	}
	if why := s.chooses(path, real); why != "" {
		return fmt.Sprintf("`%s` is %s, which runs what %s says", command.Name, path, why)
	}
	if command.Searched() && !command.SearchedByProgram() {
		r.programs[command.Name] = path
	}
	r.wide = r.wide || !isSystems(path) || !isSystems(real) // what it belongs to lies around it
	return ""
}

// isSystems reports whether the path lies in what every confined program may read.
func isSystems(path string) bool {
	return pathname.WithinAny(sandbox.SystemTrees, path)
}

// configured notes the files of the user's own configuration that a program reads by itself.
func (r *reader) configured(s search, program string) {
	home := s.Anchors.Home
	dirs := []string{home + "/.config"}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) && dir == repo.Getenv(s.environ, "XDG_CONFIG_HOME") {
		dirs = append(dirs, dir) // of the daemon's own environment too, as long as the session's is the same
	}
	files, git := shell.ConfigurationIn(program, home, dirs)
	switch {
	case len(files) == 0:
		return
	case home == "" || home != repo.Getenv(s.environ, "HOME"):
		r.wide = true // a call has set another home: it may name what it likes, and is shown no more than any
		return
	case git:
		files = append(files, s.Confining.Git.Opened(home, repo.UserFilesIn(home, dirs)...)...)
	}
	for _, file := range files {
		r.add(file)
	}
	// The repository may belong to another user: it opens nothing that could not be seen anyway.
	if own, ok := repo.Discover(s.dir); ok && git {
		r.wide = r.wide || slices.ContainsFunc(s.Confining.Git.Opened(home, own.Configs()...), func(path string) bool {
			real, err := filepath.EvalSymlinks(path)
			return err == nil && s.Places.Place(real) == workspace.Outside && !slices.Contains(r.files, real)
		})
	}
}

// add notes a file if it exists.
func (r *reader) add(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(r.files, real) {
		r.files = append(r.files, real)
	}
}

// ownProcess are the files of /proc by which a process examines itself, where reading has no other
// effect.
var ownProcess = strings.Fields("status stat statm maps smaps smaps_rollup limits cgroup comm cmdline environ exe fd fdinfo io mounts mountinfo" +
	" mountstats ns net numa_maps oom_adj oom_score oom_score_adj personality sched schedstat wchan uid_map gid_map setgroups loginuid sessionid")

// isOwnProcess reports whether a path names what the kernel shows each process of itself. To the daemon the same name would
// be another file.
func isOwnProcess(path string) bool {
	switch dir, name := filepath.Split(path); {
	case path != filepath.Clean(path):
		return false
	case dir == "/proc/self/", dir == "/proc/thread-self/":
		return slices.Contains(ownProcess, name)
	case dir == "/proc/self/fd/":
		return strings.Trim(name, "0123456789") == ""
	}
	return path == "/proc/mounts" || path == "/dev/fd" || filepath.Dir(path) == "/proc/net"
}

// systemPlaces are where a system keeps programs that only its owner installs, and homePlaces where installers put them
// below the home directory.
var (
	systemPlaces = strings.Fields("/bin /sbin /lib /lib64 /usr /opt /snap /var/lib/snapd /nix /run/current-system /run/wrappers /etc/profiles" +
		" /etc/alternatives /home/linuxbrew/.linuxbrew /Library /System")
	homePlaces = strings.Fields("bin go .local .cargo .nvm .fnm .asdf .pyenv .rbenv .nodenv .goenv .bun .deno .sdkman .dotnet .nix-profile" +
		" .linuxbrew .npm-global .yarn .opam .ghcup .cabal .juliaup")
)

// installed reports whether the path lies where programs are installed, by the system or below home, and is not a shim.
func installed(path, home string) bool {
	inHome, err := filepath.Rel(home, path)
	return filepath.Base(filepath.Dir(path)) != "shims" &&
		(pathname.WithinAny(systemPlaces, path) || err == nil && pathname.WithinAny(homePlaces, inHome))
}

// A chooser runs a version of a program that a file names which it finds in the working directory or above.
type chooser struct {
	dir, program string // it lies in a directory of that name, or is that program
	files        string
}

// choosers are managers of versions, after their manuals. Absent: those of which a program of the table has a refusal of its
// own, such as corepack.
var choosers = []chooser{
	{dir: "shims", files: ".tool-versions .mise.toml mise.toml .mise.local.toml mise.local.toml .config/mise/config.toml .python-version .ruby-version" +
		" .node-version .nvmrc .go-version .java-version .php-version .perl-version .prototools .swift-version"},
	{dir: ".volta/bin", files: "package.json"},
	{dir: ".proto/bin", files: ".prototools"},
	{program: "rustup", files: "rust-toolchain rust-toolchain.toml"},
	{program: "mise", files: ".tool-versions .mise.toml mise.toml"},
	{program: "aqua-proxy", files: "aqua.yaml .aqua.yaml"},
}

// chooses returns the file by which the program at a path would choose what it runs, if calls can
// write it and it contains more than a version; empty: none.
func (s *search) chooses(path, real string) string {
	for _, m := range choosers {
		if m.program != "" && filepath.Base(real) != m.program || m.dir != "" && !strings.HasSuffix(filepath.Dir(path), "/"+m.dir) {
			continue
		}
		for dir := s.dir; ; dir = filepath.Dir(dir) {
			for name := range strings.FieldsSeq(m.files) {
				if file := filepath.Join(dir, name); s.changeable(file) && !versionsOnly(file) {
					return file
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return ""
}

// versionsOnly reports whether a file is not there, or holds names and numbers only: no path, and no address.
func versionsOnly(file string) bool {
	if _, err := os.Lstat(file); os.IsNotExist(err) {
		return true
	}
	data, err := repo.ReadSmall(file)
	text := string(data)
	return err == nil && !strings.ContainsAny(text, "/:\\(){}") && !strings.Contains(text, "..") && !strings.Contains(text, "path")
}
