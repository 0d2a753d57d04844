package glob

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
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

// FuzzNewest selects and sorts matches, and compares with the order of their whole paths.
func FuzzNewest(f *testing.F) {
	f.Add([]byte("a/b\x00a\x01a/b/c\x00a/\x02z"), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		var list []match
		for i, path := range bytes.Split(data, []byte{0}) {
			dir, name := filepath.Split(string(path))
			list = append(list, match{dir, name + strconv.Itoa(i), int64(len(path) % 3)})
		}
		want := slices.Clone(list)
		slices.SortFunc(want, func(a, b match) int {
			return cmp.Or(cmp.Compare(b.modified, a.modified), cmp.Compare(a.dir+a.name, b.dir+b.name))
		})
		first := min(int(n)+1, len(list))
		selectFirst(list, first)
		if list[first-1] != want[first-1] {
			t.Fatalf("%+v is the match %d, want %+v", list[first-1], first, want[first-1])
		}
		slices.SortFunc(list[:first], func(a, b match) int { return a.compare(&b) })
		if !slices.Equal(list[:first], want[:first]) {
			t.Fatalf("%+v, want %+v", list[:first], want[:first])
		}
	})
}
