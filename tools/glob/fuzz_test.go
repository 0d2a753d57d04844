package glob

import (
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// FuzzPattern: any text is a pattern or an error, and a pattern means the same files as doublestar says, where both
// speak of the same thing: a path without special names, a pattern without "." and empty segments.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"**/*.go", "a/{b,c/**}/[x-z]?.t", `\{a\}`, "{,a}b", "[!a]/**", "a**b/**/c", "{{a,b},c}/*", `[\]a]`, "a{b,{c,d}}e", `\**[*]**?***`} {
		f.Add(seed, "a/b/c.go")
		f.Add(seed, "c/x/y.t")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := parsePattern(text, text)
		if err != nil {
			return
		}
		names := strings.Split(path, "/")
		for _, name := range names {
			if name == "" || strings.HasPrefix(name, ".") || name == "node_modules" {
				return
			}
		}
		dir, name := names[:len(names)-1], names[len(names)-1]
		polites, blunts := p.matches(p.after(dir, polite), name, polite), p.matches(p.after(dir, blunt), name, blunt)
		leads := len(dir) == 0 || p.leads(p.after(dir[:len(dir)-1], blunt), dir[len(dir)-1], blunt)
		if polites && !blunts || blunts && !leads {
			t.Fatalf("pattern %q, path %q: polite %v, blunt %v, leads to its directory %v", text, path, polites, blunts, leads)
		}
		if strings.Contains(text, ".") || strings.Contains(text, "//") || strings.HasPrefix(text, "/") || strings.HasSuffix(text, "/") || strings.ContainsAny(text, `{}\`) {
			return
		}
		if strings.HasSuffix(text, "**") {
			return // doublestar lets a "**" at the end stand for nothing, and so for the directory
		}
		if len(names) > 1 && strings.Contains(text, "[") {
			return // doublestar lets a class such as [!a] take the slash, which no name holds
		}
		if want := doublestar.MatchUnvalidated(text, path); want != blunts {
			t.Fatalf("pattern %q, path %q: got %v, doublestar says %v", text, path, blunts, want)
		}
	})
}
