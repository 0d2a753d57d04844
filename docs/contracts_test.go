package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contracts are the files that other packages and programs are written against.
var contracts = []string{
	"proto/toold/v1/*.proto", "tools/tools.go", "scheduler/task.go", "scheduler/pipeline/call.go", "scheduler/pipeline/event.go",
	"daemon/journal/journal.go", "daemon/settings/settings.go",
}

// TestContractsAreExplained: at least a third of a contract is comments: guarantees, units, owners, errors.
func TestContractsAreExplained(t *testing.T) {
	for _, pattern := range contracts {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			comments, code := 0, 0
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				comment := strings.HasPrefix(line, "//")
				if line != "" && !comment {
					code++
				}
				if comment || strings.Contains(line, " // ") {
					comments++
				}
			}
			if 3*comments < comments+code {
				t.Errorf("%s has %d lines with comments and %d of code; want a third", name, comments, code)
			}
		}
	}
}
