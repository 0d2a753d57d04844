package pipeline

// What the ignore files around a file say, as git reads them and as rg does. It does not know which program asks, nor what
// is looked for. What it cannot read it takes for a file that leaves nothing out.

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/toold/toold/tools/walk"
)

// largestIgnoreFile is in bytes; no larger one is read.
const largestIgnoreFile = 1 << 20

// ignoreFiles are those that rg obeys in every directory.
var ignoreFiles = []string{".gitignore", ".ignore", ".rgignore"}

// plainFile reads a regular file, whose content is nil when there is none; a link counts as one only where linked. sure is
// false when there is something that was not read.
func plainFile(name string, linked bool) (data []byte, sure bool) {
	look := os.Lstat
	if linked {
		look = os.Stat
	}
	info, err := look(name)
	switch {
	case err != nil:
		return nil, errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	case !info.Mode().IsRegular(), info.Size() > largestIgnoreFile:
		return nil, false
	}
	data, err = os.ReadFile(name)
	return data, err == nil
}

// keeps says whether a line of one of the ignore files that apply to the file at the real path may take it in again. home is
// where git's settings are.
func keeps(real, home string) bool {
	var names []string
	for dir := filepath.Dir(real); ; dir = filepath.Dir(dir) {
		for _, name := range ignoreFiles {
			names = append(names, filepath.Join(dir, name))
		}
		names = append(names, filepath.Join(storeOf(dir), "info", "exclude"))
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, name := range append(names, globalIgnores(real, home)...) {
		if data, sure := plainFile(name, true); !sure || takesIn(data) {
			return true
		}
	}
	return false
}

// takesIn says whether a line of an ignore file takes files in.
func takesIn(data []byte) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		if bytes.HasPrefix(line, []byte("!")) {
			return true
		}
	}
	return false
}

var excludesSetting = regexp.MustCompile(`(?i)excludesfile\s*=\s*"?([^"\n#;]+)`)

// globalIgnores are the ignore files that git's settings name, and the usual one.
func globalIgnores(real, home string) (names []string) {
	names = []string{filepath.Join(home, ".config", "git", "ignore")}
	settings := []string{"/etc/gitconfig", filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config")}
	if top := repositoryOf(filepath.Dir(real)); top != "" {
		settings = append(settings, filepath.Join(storeOf(top), "config"))
	}
	for _, setting := range settings {
		data, _ := plainFile(setting, true)
		for _, found := range excludesSetting.FindAllSubmatch(data, -1) {
			name := strings.TrimSpace(string(found[1]))
			if below, ok := strings.CutPrefix(name, "~/"); ok {
				name = filepath.Join(home, below)
			}
			if filepath.IsAbs(name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// repositoryOf is the top of the repository that a directory lies in; empty: it lies in none.
func repositoryOf(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// storeOf is where a repository whose top is dir keeps what its working trees share: .git, or where that file leads.
func storeOf(dir string) string {
	store := filepath.Join(dir, ".git")
	data, _ := plainFile(store, false)
	named, ok := strings.CutPrefix(string(data), "gitdir:")
	if !ok {
		return store
	}
	store = at(strings.TrimSpace(named), dir)
	if common, _ := plainFile(filepath.Join(store, "commondir"), false); common != nil {
		store = at(strings.TrimSpace(string(common)), store)
	}
	return store
}

// An ignoring is what git's ignore files say below the top of a repository: as it was read, by directory.
type ignoring struct {
	top   string
	outer []walk.Rules          // the repository's own file, and the user's
	inner map[string]walk.Rules // by directory, relative to top
}

func newIgnoring(top, home string) *ignoring {
	g := &ignoring{top: top, inner: map[string]walk.Rules{}}
	exclude, _ := plainFile(filepath.Join(storeOf(top), "info", "exclude"), true)
	g.outer = append(g.outer, walk.ParseRules(exclude))
	for _, name := range globalIgnores(filepath.Join(top, "x"), home) {
		data, _ := plainFile(name, true)
		g.outer = append(g.outer, walk.ParseRules(data))
	}
	return g
}

// ignores says whether git leaves out an entry, whose directory it does not leave out.
func (g *ignoring) ignores(rel string, isDir bool) bool {
	for dir := filepath.Dir(rel); ; dir = filepath.Dir(dir) {
		below, err := filepath.Rel(dir, rel)
		if err != nil {
			return false
		}
		if v := g.at(dir).Match(below, isDir); v != walk.Silent {
			return v == walk.Ignored
		}
		if dir == "." {
			break
		}
	}
	for _, rules := range g.outer {
		if v := rules.Match(rel, isDir); v != walk.Silent {
			return v == walk.Ignored
		}
	}
	return false
}

// at gives the lines of a directory's own file.
func (g *ignoring) at(dir string) walk.Rules {
	rules, known := g.inner[dir]
	if !known {
		data, _ := plainFile(filepath.Join(g.top, dir, ".gitignore"), false)
		rules = walk.ParseRules(data)
		g.inner[dir] = rules
	}
	return rules
}

// kept says whether neither an entry nor a directory above it is left out.
func (g *ignoring) kept(rel string, isDir bool) bool {
	for i, c := range rel {
		if c == '/' && g.ignores(rel[:i], true) {
			return false
		}
	}
	return rel == "." || !g.ignores(rel, isDir)
}
