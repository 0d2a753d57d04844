// From what an action declares to what a verdict is derived from: names are resolved, places judged, and the call's view
// of the files is cut to what it has declared.

package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/shell/damage"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/grep/selection"
)

// look checks the declared effects against the present state, and sets the call's view of the
// files.
func (c *Call) look(ctx context.Context, env *tools.Env) (*permission.Facts, error) {
	rules, effects := c.rights.Rules, c.parsed.effects
	c.environ = env.Environ
	f := &permission.Facts{
		Tool: c.Name, Opinions: c.opinions, Commands: effects.Commands, Hosts: effects.Hosts, Opaque: effects.Opaque, External: effects.External,
		Reason: effects.Reason, Unknown: effects.Unknown, Dir: env.Dir, Unconfined: effects.Unconfined,
	}
	if rules.AboutParameters() {
		f.Input = scalars(c.parsed.input)
	}
	places, home := c.rights.located(f, env), repo.Getenv(env.Environ, "HOME")
	s := scene{places: places, unmounted: c.rights.unmounted(f), rules: rules, dir: env.Dir, home: home, git: c.rights.Confining.Git, owner: c.rights.Anchors.Home, environ: env.Environ, steered: slices.ContainsFunc(effects.Commands, shell.Command.SteersPatterns)}
	f.Patterns = s.patterns(effects.Commands)
	grant := workspace.Grant{Call: c.Key, Dir: env.Dir, ReadDenied: c.deniesRead(rules)}
	for _, path := range effects.Reads {
		if path.By > 0 && path.Unnamed && !effects.Commands[path.By-1].ReadOnly && !(effects.Commands[path.By-1].Vague && rules.AboutReading()) {
			continue // a program that may do anything may read anything: leave to run it is leave for that
		}
		if len(effects.Commands) > 0 && isOwnProcess(path.Name) {
			f.Accesses = append(f.Accesses, permission.Access{Named: path.Name, Real: path.Name, Inside: true, Names: path.Names, By: path.By, Part: path.Part})
			continue
		}
		real, err := s.add(ctx, f, path, false)
		if err != nil {
			return nil, err
		}
		grant.Reads = append(grant.Reads, workspace.Grantee{Real: real.Real, Tree: path.Tree})
	}
	s.shown(ctx, f)
	var written []workspace.Path
	for _, path := range effects.Writes {
		real, err := s.add(ctx, f, path, true)
		if err != nil {
			return nil, err
		}
		grant.Writes = append(grant.Writes, workspace.Grantee{Real: real.Real, Tree: path.Tree})
		written = append(written, real)
	}
	grant.Changes = append(declared(f, written), s.guessed(effects.Commands)...)
	c.git = c.rights.gitChanges(f)
	c.rights.gitWorks(ctx, f, s)
	if err := worksOutside(ctx, f, s); err != nil {
		return nil, err
	}
	f.Critical = damage.Find(effects.Commands, namesOf(effects.Writes), damage.Around{Dir: env.Dir, Home: home, Roots: places.Roots(), Environ: env.Environ})
	f.Unconfined = f.Unconfined && !c.rights.Confining.Off && !c.rights.Escape.Excludes(f) // else leave to go outside is not asked
	if err := c.reach(f); err != nil {
		return nil, err
	}
	c.rights.open(f)
	f.Boxed = c.rights.boxed(f)
	c.files = places.View(grant, c.rights.ReadState)
	c.reads = c.reader(f, env)
	env.Programs = c.reads.programs
	env.Files = c.files
	env.Box = c.checking(ctx, f)
	return f, nil
}

// namesOf returns the names of paths, as declared.
func namesOf(paths []tools.Path) []string {
	names := make([]string, len(paths))
	for i := range paths {
		names[i] = paths[i].Name
	}
	return names
}

// touched is a digest of what a call would reach: a yes is for that, however it is named.
func touched(f *permission.Facts) string {
	var b strings.Builder
	if len(f.Commands) > 0 {
		fmt.Fprintf(&b, "%q", f.Dir)
	}
	for _, a := range f.Accesses {
		fmt.Fprintf(&b, "%q%t%t%q%q", a.OnDisk(), a.Write, a.Tree, a.Opens, a.Leaves)
	}
	return DigestOf(b.String())
}

// A scene is where declared paths are looked up.
type scene struct {
	places  *workspace.Workspace
	rules   *permission.Rules
	dir     string
	home    string // of the user; empty: not known
	git     *repo.Finder
	owner   string   // the home directory of the daemon's user, by which git finds that user's configuration
	environ []string // what commands would see
	// unmounted: nothing can be put in the place of the machine's directories for temporary files.
	unmounted bool
	// steered: what a pattern stands for may be changed by the script itself.
	steered bool
}

// add resolves one declared path and notes it among the facts.
func (s scene) add(ctx context.Context, f *permission.Facts, path tools.Path, write bool) (workspace.Path, error) {
	resolve := s.places.Resolve
	if path.Entry {
		resolve = s.places.ResolveEntry
	}
	real, err := resolve(s.dir, path.Name)
	if err != nil {
		return real, err
	}
	place := s.places.Place(real.Real)
	if s.unmounted && real.Mapped {
		return real, unmountedFault(real)
	}
	if place == workspace.Hidden {
		return real, fault.Deniedf("hidden_path", "%s belongs to the daemon itself and is never opened for a tool.", real.Shown())
	}
	a := permission.Access{
		Named: real.Named, Real: real.Seen, Disk: real.Real, Missing: real.Missing, Write: write, Tree: path.Tree, Names: path.Names, Unnamed: path.Unnamed, By: path.By, Part: path.Part, Manner: path.Manner,
		Scratch: place == workspace.Scratch,
		Inside:  place == workspace.InRoot || place == workspace.Scratch || !write && (place == workspace.Readable || place == workspace.Public),
	}
	if info, err := os.Stat(real.Real); err == nil {
		a.Dir = info.IsDir()
	}
	if write {
		a.Runs = s.git.Runs(real.Real, s.owner)
	}
	var command *shell.Command
	if path.By > 0 {
		command = &f.Commands[path.By-1]
	}
	a.Below = s.below(ctx, &a, command)
	f.Accesses = append(f.Accesses, a)
	return real, nil
}

// below reports whether an access to a whole directory would include something that a rule covers.
// A tool's own search skips such files; a program does not, and a tool that writes applies only the
// rules about reading. command is the command that names the access; nil: a redirection, or the
// tool itself.
func (s scene) below(ctx context.Context, a *permission.Access, command *shell.Command) string {
	about, verb, rule := s.rules.AboutReading(), "read", s.keepsReading
	if a.Write {
		about, verb, rule = s.rules.AboutWriting(), "change", s.keepsWriting
	}
	switch {
	case command != nil && !a.Unnamed && len(command.Tracked) > 0 && a.Named == s.dir && !command.NamesPath(s.dir, s.dir): // what git shows of it is looked at apart
		return ""
	case !a.Tree, !a.Dir, !a.Write && (a.Part == "" || a.Names):
		return ""
	}
	who, own := "`"+a.Part+"`", s.places.HiddenBelow(a.OnDisk())
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
		return fmt.Sprintf("%s would %s %s, and %s is about that.", who, verb, s.places.Seen(found), why)
	case !sure:
		return fmt.Sprintf("%s would %s all of %s, which is too large to look for files that rules are about.", who, verb, a.Real)
	}
	return ""
}

// keepsReading returns the rule that denies reading the file at a real path, or asks first; empty: none does.
func (s scene) keepsReading(real string) string {
	return naming(s.rules.DeniesRead(s.places.Seen(real), nil))
}

// keepsWriting is keepsReading for writing.
func (s scene) keepsWriting(real string) string {
	return naming(s.rules.KeepsWriting(s.places.Seen(real)))
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
		return s.places.FindReadDenied(ctx, dir, readDenied)
	case command.Picks.Below(command, a.Named, s.dir):
		return s.given(ctx, command.Picks, dir, readDenied)
	}
	if files, ok := command.Picked(a.Named, s.dir, s.glob); ok && !s.steered {
		for _, file := range files {
			real, err := s.places.Resolve("/", file)
			if err != nil {
				return "", "", false
			}
			if why = cmp.Or(readDenied(file), readDenied(real.Real)); why != "" {
				return file, why, true
			}
			if info, err := os.Stat(real.Real); err == nil && info.IsDir() {
				if found, why, sure = s.places.FindReadDenied(ctx, real.Real, readDenied); found != "" || !sure {
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
	return s.places.FindReadDenied(ctx, dir, func(real string) string {
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

// deniesRead keeps the call's own searches from files that a rule denies reading, or asks about and has not been asked.
func (c *Call) deniesRead(rules *permission.Rules) func(real string) string {
	if !rules.AboutReading() {
		return nil
	}
	places := c.rights.Places
	return func(real string) string {
		real = places.Seen(real)
		var asked []permission.Reason
		if grounds := c.asked.Load(); grounds != nil {
			asked = *grounds
		}
		rule := rules.DeniesRead(real, asked)
		if rule == nil {
			return ""
		}
		verb := map[permission.List]string{permission.DenyList: "denies reading", permission.AskList: "asks before reading"}[rule.List]
		return fmt.Sprintf("The rule %s in %s %s %s.", rule.Text, rule.Origin, verb, real)
	}
}

// scalars returns the texts, numbers and truth values at the top level of an input, as text.
func scalars(input string) map[string]string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &fields) != nil {
		return nil
	}
	found := map[string]string{}
	for name, value := range fields {
		value = bytes.TrimSpace(value)
		var text string
		switch {
		case len(value) == 0 || value[0] == '{' || value[0] == '[' || string(value) == "null":
		case json.Unmarshal(value, &text) == nil:
			found[name] = text
		default:
			found[name] = string(value)
		}
	}
	return found
}
