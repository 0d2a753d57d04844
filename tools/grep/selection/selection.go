// Package selection decides by name which files grep and ripgrep search: ripgrep's types of files,
// and what the flags and defaults of the two programs leave out below a directory. It does not know
// the content of files, nor who searches.
package selection

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/fs/walk"
)

// A Command is a command that searches below a directory.
type Command struct {
	*shell.Command
	Environ []string // its environment
	// Pattern returns the pattern that the value of a flag is for the program; false if it is
	// unknown, since the shell expands it.
	Pattern func(shell.Flag) (glob string, ok bool)
}

// LeavesOut returns a function that reports whether the command leaves out a file: rel is relative
// to the directory, and real is the same file's path. It returns nil if the command leaves nothing
// out for certain; flags that are not understood leave nothing out. Sources: grep(1) 3.8, and the
// guide of ripgrep 13 to 15.
func (c Command) LeavesOut() func(rel, real string) bool {
	if c.Flags == nil {
		return nil
	}
	switch filepath.Base(c.Name) {
	case "grep", "egrep", "fgrep":
		return c.grep()
	case "rg":
		return c.ripgrep()
	}
	return nil
}

// MayFit reports whether a base name may match a pattern; classes differ between systems, so the
// answer may be a false yes.
func MayFit(glob, name string) bool {
	ok, err := filepath.Match(glob, name)
	return ok || err != nil || strings.Contains(glob, "[")
}

// sureFit reports whether a base name certainly matches; the answer may be a false no.
func sureFit(glob, name string) bool {
	ok, err := filepath.Match(glob, name)
	return ok && err == nil && !strings.Contains(glob, "[")
}

// A sieve is the patterns of base names from flags, in their order.
type sieve []sifter

type sifter struct {
	glob string
	out  bool // leaves out what fits
}

// sift adds the pattern of a flag; false: it is not a pattern of base names, or unknown.
func (c Command) sift(list *sieve, flag shell.Flag, out bool) bool {
	glob, ok := c.Pattern(flag)
	if !ok || glob == "" || strings.ContainsAny(glob, `/!{}\`) {
		return false
	}
	*list = append(*list, sifter{glob, out})
	return true
}

// takes reports whether one of the patterns selects files.
func (s sieve) takes() bool { return slices.ContainsFunc(s, func(f sifter) bool { return !f.out }) }

// fit reports whether a pattern of that kind matches the name.
func (s sieve) fit(name string, out bool) bool {
	return slices.ContainsFunc(s, func(f sifter) bool { return f.out == out && MayFit(f.glob, name) })
}

// grep implements grep's rule: of --include and --exclude the last that matches a file counts; if
// none does, the first one decides.
func (c Command) grep() func(rel, real string) bool {
	var files, dirs sieve
	for _, f := range c.Flags {
		ok := true
		switch f.Name {
		case "--include", "--exclude":
			ok = c.sift(&files, f, f.Name == "--exclude")
		case "--exclude-dir":
			ok = c.sift(&dirs, f, true)
		case "--exclude-from", "-R", "--dereference-recursive": // the latter follow links, whose names have no meaning
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
			if f.out && sureFit(f.glob, name) || !f.out && MayFit(f.glob, name) {
				return f.out
			}
		}
		return len(files) > 0 && !files[0].out
	}
}

// rgAll are flags by which rg searches files that it leaves out otherwise, or selects them in ways
// that are not evaluated here.
var rgAll = []string{
	"-.", "--hidden", "-u", "--unrestricted", "--iglob", "--glob-case-insensitive", "--ignore-file", "--type-add", "--type-clear", "--pre",
}

// rgOtherwise are flags that change the meaning of patterns; with the first two rg follows links.
var rgOtherwise = []string{"-L", "--follow", "--iglob", "--glob-case-insensitive", "--type-add", "--type-clear"}

// ripgrep implements rg's rule: a positive pattern leaves out everything that does not match, and
// selects even hidden files; so does a type.
func (c Command) ripgrep() func(rel, real string) bool {
	var globs, types sieve
	hidden := !slices.ContainsFunc(c.Environ, func(pair string) bool { return strings.HasPrefix(pair, "RIPGREP_CONFIG_PATH=") })
	for _, f := range c.Flags {
		var ok bool
		switch f.Name {
		case "-g", "--glob":
			f.Name = "--glob"
			out := f.Value.Literal && strings.HasPrefix(f.Value.Text, "!")
			if out {
				f.Value.Text = f.Value.Text[1:]
			}
			ok = c.sift(&globs, f, out)
		case "-t", "--type":
			var known []string
			known, ok = everyVersion(f.Value.Text)
			ok = ok && f.Value.Literal
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
		return hidden && slices.ContainsFunc(below, func(part string) bool { return strings.HasPrefix(part, ".") }) && !walk.TakesBack(real, c.Environ)
	}
}
