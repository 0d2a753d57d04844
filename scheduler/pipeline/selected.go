package pipeline

// Which files below a directory grep and rg leave out, as far as their flags and defaults say. What is not understood
// leaves nothing out. Sources: grep(1) 3.8, and the guide of ripgrep 13 to 15.

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/shell"
	"github.com/toold/toold/tools/walk"
)

// passesOver says which files below a directory a search leaves out; nil: none that is known. rel is relative to that
// directory, real is the same file.
func (s scene) passesOver(c *shell.Command) func(rel, real string) bool {
	switch {
	case c.Flags == nil:
		return nil
	}
	switch filepath.Base(c.Name) {
	case "grep", "egrep", "fgrep":
		return s.grepLeaves(c)
	case "rg":
		return s.rgLeaves(c)
	}
	return nil
}

// given looks for something barred among the files below a directory that another command names to one; ok is false when
// that is not how it comes to them.
func (s scene) given(ctx context.Context, c *shell.Command, a *permission.Access, barred func(real string) string) (found, why string, sure, ok bool) {
	names := func(word shell.Word) bool { return word.Literal && at(word.Text, s.dir) == a.Named }
	if c.Picks == nil || slices.ContainsFunc(c.Words[min(1, len(c.Words)):], names) ||
		!slices.ContainsFunc(c.Picks.From, func(from string) bool { return at(from, s.dir) == a.Named }) {
		return "", "", false, false
	}
	taken := func(real string) string {
		rel, err := filepath.Rel(a.OnDisk(), real)
		switch {
		case err != nil || !fitsAll(c.Picks.Names, filepath.Base(rel)):
			return ""
		case c.Picks.Apart && strings.ContainsAny(rel, " \t\n'\"\\"):
			return "perhaps a rule, as its name comes apart at blanks and quotes into others,"
		case c.Picks.Kept && strings.HasPrefix(rel, "-"):
			return "perhaps a rule, as its name is taken for a flag,"
		}
		if why := barred(real); why != "" {
			return why
		}
		return s.behind(real, barred)
	}
	if c.Picks.Kept {
		found, why, sure = s.tracked(ctx, a.OnDisk(), taken)
	} else {
		found, why, sure = s.places.FindBarred(ctx, a.OnDisk(), taken)
	}
	return found, why, sure, true
}

// behind asks about what a link leads to; empty: it is none.
func (s scene) behind(real string, barred func(real string) string) string {
	if info, err := os.Lstat(real); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return ""
	}
	p, err := s.places.Resolve("/", real)
	if err != nil {
		return "" // nothing that could be read
	}
	return barred(p.Real)
}

// fitsAll says whether a name fits every one of the patterns.
func fitsAll(globs []string, name string) bool {
	return !slices.ContainsFunc(globs, func(glob string) bool { return !fits(glob, name) })
}

// fits errs towards yes, since classes are not the same everywhere.
func fits(glob, name string) bool {
	ok, err := filepath.Match(glob, name)
	return ok || err != nil || strings.Contains(glob, "[")
}

// A sieve is the patterns of last names that flags bring, in their order.
type sieve []sifter

type sifter struct {
	glob string
	out  bool // leaves out what fits
}

// sift adds the pattern of a flag; false: it is not one of last names alone, or not known.
func (s scene) sift(list *sieve, flag shell.Flag, out bool) bool {
	glob := flag.Value.Text
	if !flag.Value.Literal { // bash leaves alone a pattern that no file fits
		var attached bool
		glob, attached = strings.CutPrefix(glob, flag.Name+"=")
		if !attached || s.steered || !patternShape.MatchString(glob) || len(matching(s.places, escaped.Replace(s.dir)+"/"+flag.Name+"="+glob)) > 0 {
			return false
		}
	}
	if glob == "" || strings.ContainsAny(glob, `/!{}\`) {
		return false
	}
	*list = append(*list, sifter{glob, out})
	return true
}

// takes says whether one of the patterns says what is taken.
func (s sieve) takes() bool { return slices.ContainsFunc(s, func(f sifter) bool { return !f.out }) }

// fit says whether a pattern of that kind fits the name.
func (s sieve) fit(name string, out bool) bool {
	return slices.ContainsFunc(s, func(f sifter) bool { return f.out == out && fits(f.glob, name) })
}

// grepLeaves: of --include and --exclude the last that fits a file counts, and where none does the first says what becomes
// of it.
func (s scene) grepLeaves(c *shell.Command) func(rel, real string) bool {
	var files, dirs sieve
	for _, f := range c.Flags {
		ok := true
		switch f.Name {
		case "--include", "--exclude":
			ok = s.sift(&files, f, f.Name == "--exclude")
		case "--exclude-dir":
			ok = s.sift(&dirs, f, true)
		case "--exclude-from", "-R", "--dereference-recursive": // the latter follow links, whose names say nothing
			ok = false
		}
		if !ok {
			return nil
		}
	}
	if len(files)+len(dirs) == 0 {
		return nil
	}
	return func(rel, _ string) bool {
		parts := strings.Split(rel, "/")
		name := parts[len(parts)-1]
		if slices.ContainsFunc(parts[:len(parts)-1], func(dir string) bool { return dirs.fit(dir, true) }) {
			return true
		}
		for _, f := range slices.Backward(files) {
			if f.out && sureFit(f.glob, name) || !f.out && fits(f.glob, name) {
				return f.out
			}
		}
		return len(files) > 0 && !files[0].out
	}
}

// sureFit errs towards no.
func sureFit(glob, name string) bool {
	ok, err := filepath.Match(glob, name)
	return ok && err == nil && !strings.Contains(glob, "[")
}

// rgTypes are types of rg with all patterns that they have in one of its versions.
var rgTypes = map[string][]string{
	"c": {"*.[chH]", "*.[chH].in", "*.cats"}, "cpp": {"*.[ChH]*", "*.[ch]pp*", "*.[ch]xx*", "*.cc*", "*.hh*", "*.inl"},
	"css": {"*.css", "*.scss"}, "go": {"*.go"}, "html": {"*.ejs", "*.htm", "*.html"}, "java": {"*.java", "*.jsp", "*.jspx", "*.properties"},
	"js": {"*.js", "*.jsx", "*.vue", "*.cjs", "*.mjs"}, "json": {"*.json", "composer.lock", "*.sarif"}, "md": {"*.markdown", "*.md", "*.mdown", "*.mdwn", "*.mdx", "*.mkd", "*.mkdn"},
	"py": {"*.py", "*.pyi"}, "rust": {"*.rs"}, "sql": {"*.psql", "*.sql"}, "swift": {"*.swift"}, "toml": {"*.toml", "Cargo.lock"},
	"ts": {"*.ts", "*.tsx", "*.cts", "*.mts"}, "yaml": {"*.yaml", "*.yml"},
}

// rgAll are flags of rg by which it looks into files that it leaves out otherwise, or chooses them in ways that are not
// looked at here.
var rgAll = []string{
	"-.", "--hidden", "-u", "--unrestricted", "--iglob", "--glob-case-insensitive", "--ignore-file", "--type-add", "--type-clear", "--pre",
}

// rgOtherwise are those by which patterns of names say less than they seem to; with the first two it follows links.
var rgOtherwise = []string{"-L", "--follow", "--iglob", "--glob-case-insensitive", "--type-add", "--type-clear"}

// rgLeaves: a positive pattern leaves out whatever fits none, and takes in even what is hidden; so does a type.
func (s scene) rgLeaves(c *shell.Command) func(rel, real string) bool {
	var globs, types sieve
	hidden := !slices.ContainsFunc(s.environ, func(pair string) bool { return strings.HasPrefix(pair, "RIPGREP_CONFIG_PATH=") })
	for _, f := range c.Flags {
		var ok bool
		switch f.Name {
		case "-g", "--glob":
			f.Name = "--glob"
			out := f.Value.Literal && strings.HasPrefix(f.Value.Text, "!")
			if out {
				f.Value.Text = f.Value.Text[1:]
			}
			ok = s.sift(&globs, f, out)
		case "-t", "--type":
			known := rgTypes[f.Value.Text]
			ok = f.Value.Literal && known != nil
			for _, glob := range known {
				types = append(types, sifter{glob: glob})
			}
		default:
			hidden = hidden && !slices.Contains(rgAll, f.Name)
			ok = !slices.Contains(rgOtherwise, f.Name)
		}
		if !ok {
			return nil
		}
	}
	if len(globs)+len(types) == 0 && !hidden {
		return nil
	}
	return func(rel, real string) bool {
		parts := strings.Split(rel, "/")
		name := parts[len(parts)-1]
		switch {
		case globs.takes():
			return !globs.fit(name, false)
		case slices.ContainsFunc(parts, func(part string) bool {
			return slices.ContainsFunc(globs, func(f sifter) bool { return sureFit(f.glob, part) })
		}):
			return true
		case len(types) > 0 && !types.fit(name, false):
			return true
		}
		below := parts
		if len(types) > 0 { // a type takes in files that are hidden, in directories that are not
			below = parts[:len(parts)-1]
		}
		return hidden && slices.ContainsFunc(below, func(part string) bool { return strings.HasPrefix(part, ".") }) && !walk.TakesBack(real, s.environ)
	}
}
