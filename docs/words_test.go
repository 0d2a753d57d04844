// The list of words is long, and the race detector makes the search ten times as slow: "make lint" runs it without.

//go:build !race

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A word is one that the tree does not use, in code, comments, messages and documents, with what to write instead. The words of
// the field are in ARCHITECTURE.md's glossary.
type word struct {
	pattern, write string
	// programs is set for a word that tests may use. in, if not empty, holds the beginnings of the paths that the word is held in.
	programs bool
	in       []string
	// but holds the beginnings of paths in which the word is still to be replaced.
	but []string
}

var words = []word{
	{pattern: `errands?`, write: "client request"},
	{pattern: `heirs?`, write: "successor"},
	{pattern: `wrecks?|wrecked`, write: "crashed session, not restored"},
	{pattern: `likeness`, write: "judge, dry run"},
	{pattern: `putters?`, write: "snapshotter, restore"},
	{pattern: `cameras?|exposures?`, write: "snapshotter, snapshot set"},
	{pattern: `farFetched|deeds?`, write: "implausible, operation"},
	{pattern: `shel(f|ves)`, write: "store, cache"},
	{pattern: `resupply|keepHouse`, write: "refresh, maintain"},
	{pattern: `visitors?|expel(s|led)?`, write: "connection, evict"},
	{pattern: `seers|printers`, write: "programs that need /proc, output programs"},
	{pattern: `staffs?|employ(s|ed)?`, write: "start, reconcile (servers)"},
	{pattern: `barred`, write: "denied", programs: true},
	{pattern: `learned`, write: "read state, seen"},
	{pattern: `wish(es)?`, write: "request, preference"},
	{pattern: `strangers?`, write: "unknown", programs: true},
	{pattern: `anew`, write: "again"},
	{pattern: `mend(s|ed)?`, write: "fix"},
	{pattern: `in the stead|in (its|his|their) stead`, write: "instead"},
	{pattern: `another hand`, write: "another program"},
	{pattern: `hands? (over|on)|handed (over|on)`, write: "pass, forward"},
	{pattern: `Knows nothing|Know nothing|that of which`, write: "say what it does"},
	{pattern: `as far as that goes`, write: "as far as possible"},
	{pattern: `(and|or), be it|, be it`, write: "or, even", programs: true},
	{pattern: `puts? (\w+ ){0,3}into words`, write: "returns the fault, formats", programs: true},
	{pattern: `somebody|anybody|everybody|whoever`, write: "the client, the user, the model, a program", programs: true},
	{pattern: `nobody`, write: "no client, no program", programs: true, in: []string{"tools/", "scheduler/", "proto/"}, but: []string{"tools/exec/sandbox/escape/"}},
	{pattern: `(that|it|this) is no \w+( that| of|[.,;])`, write: "is not a", programs: true},
	{pattern: `^\s*// \w+ (gives|says|tells|hears)`, write: "returns, reports whether, writes, notifies"},
}

// honest are places where such a word means something else, each with the part of the line that shows it.
var honest = []string{
	"shelf life",
	"g.anew", "anew is acting", "anew()", // a policy's first use, in a benchmark
	"tclsh wish", // Tcl's shell
	"cameras store", "cameras of telephones",
	"// Greet greets",                                       // the code of an example
	"nobody is the user", "const nobody", "Seteuid(nobody)", // the user of that name
	"nobody is the only reachable host", "[]string{nobody}", // the host of that name
}

// TestWords holds the list.
func TestWords(t *testing.T) {
	all, found := make([]string, 0, len(words)), make([]*regexp.Regexp, 0, len(words))
	for _, w := range words {
		pattern := `\b(?:` + w.pattern + `)\b`
		if strings.HasPrefix(w.pattern, "^") {
			pattern = w.pattern + `\b`
		}
		all, found = append(all, pattern), append(found, regexp.MustCompile("(?i)"+pattern))
	}
	some := regexp.MustCompile("(?i)" + strings.Join(all, "|"))
	kinds := []string{".go", ".md", ".proto"}
	err := walk(func(name string) error {
		if !slices.Contains(kinds, filepath.Ext(name)) || strings.HasPrefix(name, "gen/") || name == "docs/words_test.go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			if !some.MatchString(line) || slices.ContainsFunc(honest, func(part string) bool { return strings.Contains(line, part) }) {
				continue
			}
			for i, w := range words {
				hit := found[i].FindString(line)
				if hit == "" || !w.holdsIn(name) {
					continue
				}
				t.Errorf("%s:%d has %q; write: %s", name, n+1, hit, w.write)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// holdsIn reports whether the word is held in a file.
func (w word) holdsIn(name string) bool {
	under := func(dir string) bool { return strings.HasPrefix(name, dir) }
	if w.programs && strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(w.but, under) {
		return false
	}
	return len(w.in) == 0 || slices.ContainsFunc(w.in, under)
}
