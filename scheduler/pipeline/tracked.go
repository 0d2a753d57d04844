package pipeline

// Which files git may show that it keeps: as a rule those that its ignore files do not leave out. It asks no git, and does
// not know which of them are tracked, nor what there was in earlier times.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// maxTracked is how many entries of a working tree are looked at. Ours: some tenths of a second.
const maxTracked = 100_000

// tracked looks below dir, a real path, for something that barred names a reason against and git's ignore files do not leave
// out. sure is false when it could not look at everything.
func (s scene) tracked(ctx context.Context, dir string, barred func(real string) string) (found, why string, sure bool) {
	top := repositoryOf(dir)
	if top == "" {
		return "", "", true // there is nothing that git keeps
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return "", "", false
	}
	t := trackedSearch{ignoring: newIgnoring(top, s.home), barred: barred, sure: true}
	if t.kept(rel, true) {
		t.below(ctx, rel)
	}
	return t.found, t.why, t.sure
}

// A trackedSearch is one under way.
type trackedSearch struct {
	*ignoring
	barred     func(real string) string
	seen       int
	found, why string
	sure       bool
}

func (t *trackedSearch) below(ctx context.Context, dir string) {
	entries, err := os.ReadDir(filepath.Join(t.top, dir))
	if err != nil && !os.IsNotExist(err) && !os.IsPermission(err) || ctx.Err() != nil || t.seen > maxTracked {
		t.sure = false
		return
	}
	for _, e := range entries {
		rel := filepath.Join(dir, e.Name())
		if t.seen++; e.Name() == ".git" || t.ignores(rel, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			t.below(ctx, rel)
		} else if why := t.barred(filepath.Join(t.top, rel)); why != "" {
			t.found, t.why = filepath.Join(t.top, rel), why
		}
		if t.found != "" || !t.sure {
			return
		}
	}
}

// shown notes what git commands would show of the files that it keeps, where rules are about that.
func (s scene) shown(ctx context.Context, f *permission.Facts) {
	if !s.rules.AboutReading() {
		return
	}
	for i := range f.Commands {
		for _, name := range f.Commands[i].Tracked {
			if why := s.shows(ctx, f.Commands[i].Text, name); why != "" {
				f.Accesses = append(f.Accesses, permission.Access{
					Named: s.dir, Real: s.dir, Dir: true, Tree: true, Inside: true, By: i + 1, Part: f.Commands[i].Text, Unnamed: true, Below: why,
				})
				break
			}
		}
	}
}

// shows says, as a sentence, which rule a file falls under that a git command shows of what is below a path; empty: none. "."
// is the whole repository, and DIR/. that of DIR.
func (s scene) shows(ctx context.Context, part, name string) string {
	real, err := s.places.Resolve(s.dir, name)
	if err != nil {
		return fmt.Sprintf("`%s` may show files that rules are about.", part)
	}
	dir := real.Real
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "" // that one file is looked at as such
	}
	if name == "." || strings.HasSuffix(name, "/.") {
		if dir = repositoryOf(dir); dir == "" {
			return ""
		}
	}
	found, why, sure := s.tracked(ctx, dir, s.about)
	switch {
	case found != "":
		return fmt.Sprintf("`%s` may show what git keeps of %s, and %s is about that.", part, found, why)
	case !sure:
		return fmt.Sprintf("`%s` may show all that git keeps in %s, which is too large to look for files that rules are about.", part, strings.TrimSuffix(dir, "/"))
	}
	return ""
}

// about names the rule about reading the file at a real path; empty: there is none.
func (s scene) about(real string) string {
	if rule := s.rules.Bars(s.places.Seen(real), nil); rule != nil {
		return rule.String()
	}
	return ""
}
