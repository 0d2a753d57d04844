package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// takenForGranted is a path of the machine of which a test assumes that nothing is there.
var takenForGranted = regexp.MustCompile(`(^|[^\w./)-])/(nonexistent|nowhere|no/such|no-such|does-?not-?exist|does/not/exist|not/there)\b`)

// Tests make the absent paths that they need, below a folder of their own: on some machine every other path is there.
// /proc takes no files, and what the shell package's corpora name is only parsed.
func TestAbsentPathsAreMade(t *testing.T) {
	kinds := []string{".txtar", ".py", ".js", ".mjs", ".ts", ".sh"}
	err := filepath.WalkDir(".", func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(name, ".") && name != "." || entry.Name() == "node_modules" || name == filepath.Join("tools", "exec", "shell", "testdata")):
			return filepath.SkipDir
		case entry.IsDir() || name == "docs/absent_test.go" || !strings.HasSuffix(name, "_test.go") && !slices.Contains(kinds, filepath.Ext(name)):
			return nil
		}
		for n, line := range strings.Split(document(t, name), "\n") {
			if found := takenForGranted.FindString(line); found != "" {
				t.Errorf("%s:%d takes for granted that %s does not exist; name a path below a folder of the test's own", name, n+1, strings.TrimLeft(found, ` "'=:`))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
