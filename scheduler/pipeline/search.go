// What a command would read or change below the directories that it names, where rules are about that: by patterns of names,
// by the flags of a search, or because git keeps it. Names are held against the files that are there now; no program is run.

package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/grep/selection"
)

// below reports whether an access to a whole directory would include something that a rule covers.
// A tool's own search skips such files; a program does not, and a tool that writes applies only the
// rules about reading. command is the command that names the access; nil: a redirection, or the
// tool itself.
func (s scene) below(ctx context.Context, a *permission.Access, command *shell.Command) string {
	about, verb, rule := s.Rules.AboutReading(), "read", s.keepsReading
	if a.Write {
		about, verb, rule = s.Rules.AboutWriting(), "change", s.keepsWriting
	}
	switch {
	case command != nil && !a.Unnamed && len(command.Tracked) > 0 && a.Named == s.dir && !command.NamesPath(s.dir, s.dir): // what git shows of it is looked at apart
		return ""
	case !a.Tree, !a.Dir, !a.Write && (a.Part == "" || a.Names):
		return ""
	}
	who, own := "`"+a.Part+"`", s.Places.HiddenBelow(a.OnDisk())
	if a.Part == "" {
		who = "The call"
	}
	switch {
	case own != "" && !a.Unnamed:
		return fmt.Sprintf("%s would %s all of %s, also %s, which is the daemon's own.", who, verb, a.Real, own)
	case !about:
		return ""
	case a.Unnamed:
		return fmt.Sprintf("%s may %s files that it does not name, and there are rules about which may be.", who, verb)
	}
	switch found, why, sure := s.search(ctx, a, command, rule); {
	case found != "":
		return fmt.Sprintf("%s would %s %s, and %s is about that.", who, verb, s.Places.Seen(found), why)
	case !sure:
		return fmt.Sprintf("%s would %s all of %s, which is too large to look for files that rules are about.", who, verb, a.Real)
	}
	return ""
}

// keepsReading returns the rule that denies reading the file at a real path, or asks first; empty: none does.
func (s scene) keepsReading(real string) string {
	return naming(s.Rules.DeniesRead(s.Places.Seen(real), nil))
}

// keepsWriting is keepsReading for writing.
func (s scene) keepsWriting(real string) string {
	return naming(s.Rules.KeepsWriting(s.Places.Seen(real)))
}

func naming(rule *permission.Rule) string {
	if rule == nil {
		return ""
	}
	return rule.String()
}

// search searches the directory of an access for read-denied paths, as far as the command that
// names it reads it.
func (s scene) search(ctx context.Context, a *permission.Access, command *shell.Command, readDenied func(real string) string) (found, why string, sure bool) {
	dir := a.OnDisk()
	switch {
	case command == nil || a.Write:
		return s.Places.FindReadDenied(ctx, dir, readDenied)
	case command.Picks.Below(command, a.Named, s.dir):
		return s.given(ctx, command.Picks, dir, readDenied)
	}
	if files, ok := command.Picked(a.Named, s.dir, s.glob); ok && !s.steered {
		for _, file := range files {
			real, err := s.Places.Resolve("/", file)
			if err != nil {
				return "", "", false
			}
			if why = cmp.Or(readDenied(file), readDenied(real.Real)); why != "" {
				return file, why, true
			}
			if info, err := os.Stat(real.Real); err == nil && info.IsDir() {
				if found, why, sure = s.Places.FindReadDenied(ctx, real.Real, readDenied); found != "" || !sure {
					return found, why, sure
				}
			}
		}
		return "", "", true
	}
	unexpanded := func(flag shell.Flag) (string, bool) {
		return flag.Pattern(func(word string) bool { return s.steered || len(s.glob(shell.Quoted(s.dir)+"/"+word)) > 0 })
	}
	leavesOut := selection.Command{Command: command, Environ: s.environ, Pattern: unexpanded}.LeavesOut()
	return s.Places.FindReadDenied(ctx, dir, func(real string) string {
		why := readDenied(real)
		if rel, err := filepath.Rel(dir, real); why == "" || leavesOut != nil && (err != nil || rel != "." && leavesOut(rel, real)) {
			return ""
		}
		return why
	})
}

// patterns returns what the words of commands stand for now that are patterns or begin with the home directory, by the words'
// texts, where it is not known what a command does with them.
func (s scene) patterns(commands []shell.Command) map[string][]string {
	found := map[string][]string{}
	for _, c := range commands {
		if c.ReadOnly || !c.Unlisted {
			continue
		}
		for _, word := range c.Words {
			if _, done := found[word.Text]; done {
				continue
			}
			if names, ok := word.Stands(s.dir, s.home, s.glob); ok {
				found[word.Text] = names
			}
		}
	}
	return found
}

// glob returns the files that a pattern stands for, absolute. Bash will do the same; what it finds may differ by then.
func (s scene) glob(pattern string) (names []string) {
	dir, rest := shell.AfterDir(pattern) // under the name that calls use
	found, err := filepath.Glob(shell.Quoted(s.Places.Disk(dir)) + rest)
	if err != nil {
		return nil
	}
	for _, name := range found {
		if name = s.Places.Seen(name); shell.IsVisible(pattern, name) {
			names = append(names, name)
		}
	}
	return names
}

// given looks for something readDenied among the files below a directory that another command names to one, of which that
// takes those that it picks.
func (s scene) given(ctx context.Context, picks *shell.Picks, dir string, readDenied func(real string) string) (found, why string, sure bool) {
	taken := func(real string) string {
		rel, err := filepath.Rel(dir, real)
		unfit := func(glob string) bool { return !selection.MayFit(glob, filepath.Base(rel)) }
		if err != nil || slices.ContainsFunc(picks.Names, unfit) {
			return ""
		}
		if other := picks.Misread(rel); other != "" {
			return "perhaps a rule, as its name " + other + ","
		}
		return cmp.Or(readDenied(real), s.behind(real, readDenied))
	}
	if picks.Kept {
		return s.tracked(ctx, dir, taken)
	}
	return s.Places.FindReadDenied(ctx, dir, taken)
}

// behind judges the target of a link; empty: it is not a link.
func (s scene) behind(real string, readDenied func(real string) string) string {
	if info, err := os.Lstat(real); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return ""
	}
	p, err := s.Places.Resolve("/", real)
	if err != nil {
		return "" // nothing that could be read
	}
	return readDenied(p.Real)
}

// maxTracked is how many entries of a working tree are examined. The number is our own: it takes
// some tenths of a second.
const maxTracked = 100_000

// tracked looks below dir, a real path, for a file that readDenied names a reason against and git's ignore files do not leave
// out; it returns the first by name. sure is false when it could not look at everything.
func (s scene) tracked(ctx context.Context, dir string, readDenied func(real string) string) (found, why string, sure bool) {
	top := repo.WorkTree(dir)
	if top == "" {
		return "", "", true // there is nothing that git keeps
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", "", false
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var seen atomic.Int64
	var mu sync.Mutex // guards found and why, and calls of readDenied
	tally, err := walk.Files(ctx, root, walk.Options{
		Dir: top, Environ: s.environ, Git: true,
		Choose: walk.ByPath(func(path string, _ fs.FileMode) walk.Choice {
			if seen.Add(1) > maxTracked {
				cancel()
			}
			real := filepath.Join(top, path)
			if repo.IsLink(path) || !pathname.Within(dir, real) && !pathname.Within(real, dir) {
				return walk.Leave
			}
			return walk.Take
		}),
		Visit: func(f *walk.File) {
			real := filepath.Join(top, f.Path())
			mu.Lock()
			defer mu.Unlock()
			if reason := readDenied(real); reason != "" && (found == "" || real < found) {
				found, why = real, reason
			}
		},
	})
	unseen := slices.ContainsFunc(tally.Faults, func(f walk.Fault) bool { return !errors.Is(f.Err, fs.ErrPermission) })
	return found, why, err == nil && !unseen && int(tally.Unread) == len(tally.Faults)
}

// shown notes what git commands would show of the files that it keeps, where rules are about that.
func (s scene) shown(ctx context.Context) {
	if !s.Rules.AboutReading() {
		return
	}
	for i, c := range s.f.Commands {
		for _, name := range c.Tracked {
			if why := s.shows(ctx, c.Text, name); why != "" {
				s.f.Accesses = append(s.f.Accesses, permission.Access{
					Named: s.dir, Real: s.dir, Dir: true, Tree: true, Inside: true, By: i + 1, Part: c.Text, Unnamed: true, Below: why,
				})
				break
			}
		}
	}
}

// shows returns, as a sentence, which rule a file falls under that a git command shows of what is below a path; empty: none. "."
// is the whole repository, and DIR/. that of DIR.
func (s scene) shows(ctx context.Context, part, name string) string {
	real, err := s.Places.Resolve(s.dir, name)
	if err != nil {
		return fmt.Sprintf("`%s` may show files that rules are about.", part)
	}
	dir := real.Real
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "" // that one file is looked at as such
	}
	if shell.WholeRepository(name) {
		if dir = repo.WorkTree(dir); dir == "" {
			return ""
		}
	}
	found, why, sure := s.tracked(ctx, dir, s.keepsReading)
	switch {
	case found != "":
		return fmt.Sprintf("`%s` may show what git keeps of %s, and %s is about that.", part, found, why)
	case !sure:
		return fmt.Sprintf("`%s` may show all that git keeps in %s, which is too large to look for files that rules are about.", part, strings.TrimSuffix(dir, "/"))
	}
	return ""
}
