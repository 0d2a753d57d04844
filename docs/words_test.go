package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// words are those that the tree does not use, in code, comments, messages and documents, with what to write instead. The words of
// the field are in ARCHITECTURE.md's glossary.
var words = []struct{ pattern, write string }{
	{`errands?`, "client request"},
	{`heirs?`, "successor"},
	{`wrecks?|wrecked`, "crashed session, not restored"},
	{`likeness`, "judge, dry run"},
	{`putters?`, "snapshotter, restore"},
	{`farFetched|deeds?`, "implausible, operation"},
	{`shel(f|ves)`, "store, cache"},
	{`resupply|keepHouse`, "refresh, maintain"},
	{`anew`, "again"},
	{`mend(s|ed)?`, "fix"},
	{`in the stead|in (its|his|their) stead`, "instead"},
	{`another hand`, "another program"},
	{`hands? (over|on)|handed (over|on)`, "pass, forward"},
	{`Knows nothing|Know nothing|that of which`, "say what it does"},
}

// honest are places where such a word means something else, each with the part of the line that shows it.
var honest = []string{
	"shelf life",
	"g.anew", "anew is acting", "anew()", // a policy's first use, in a benchmark
}

// TestWords holds the list. "make lint" runs it by itself.
func TestWords(t *testing.T) {
	all := make([]string, 0, len(words))
	for _, word := range words {
		all = append(all, word.pattern)
	}
	found := regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
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
			hit := found.FindString(line)
			if hit == "" || slices.ContainsFunc(honest, func(part string) bool { return strings.Contains(line, part) }) {
				continue
			}
			for _, word := range words {
				if regexp.MustCompile(`(?i)^(?:` + word.pattern + `)$`).MatchString(hit) {
					t.Errorf("%s:%d has %q; write: %s", name, n+1, hit, word.write)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
