package glob

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools/tooltest"
)

// What a rule denies reading is not found, by whatever path or link, and is counted.
func TestDeniedIsNotFound(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, []string{
		"seen.go", "key.go", "sub/.hidden/deep.go", "sub/secret/a.go", "sub/secret/b.go", "sub/seen.go",
		"to-key.go -> key.go", "link.go -> seen.go", "sub/to-secret -> secret", "by-name -> sub", "nowhere.go -> nothing",
	})
	files := tooltest.NewFiles(t, dir)
	files.Bar("key.go", "sub/secret", "sub/.hidden", "link.go")
	tooltest.Unopened(t, files.Root+"/key.go", files.Root+"/sub/secret", files.Root+"/sub/.hidden")
	for _, c := range []struct {
		pattern, path string
		want          []string
		note          string
	}{
		{"**/*.go", "", []string{"seen.go", "sub/seen.go"}, "3 files and 1 directory because a rule denies reading them, 1 hidden, 2 links not followed."},
		{"**/*.go", "by-name", []string{"by-name/seen.go"}, "1 directory because a rule denies reading it, 1 hidden."},
		{"**/.hidden/*.go", "", nil, "2 directories because a rule denies reading them, 2 links not followed."},
		{"key.go", "", nil, "No file in $DIR matches key.go.\nLeft out: 1 file because a rule denies reading it."},
		{"nothing", "", nil, "No file in $DIR matches nothing."},
	} {
		text, found, err := call(context.Background(), files.Env(), Input{c.pattern, c.path})
		var got []string
		for _, file := range found.Files {
			got = append(got, strings.TrimPrefix(file, files.Root+"/"))
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) || !strings.HasSuffix(text, strings.ReplaceAll(c.note, "$DIR", files.Root)) {
			t.Errorf("%s in %q: %v, found %v, want %v and the note %q:\n%s", c.pattern, c.path, err, got, c.want, c.note, text)
		}
	}
	for _, path := range []string{"sub/secret", "sub/to-secret", "by-name/to-secret", files.Root + "/sub/.hidden"} {
		_, _, err := call(context.Background(), files.Env(), Input{"*", path})
		if tooltest.Code(err) != "rule_denied" || !strings.Contains(err.Error(), tooltest.Rule) {
			t.Errorf("in %s: %v, want rule_denied with the rule", path, err)
		}
	}
}
