package redact

import (
	"os"
	"strings"
	"testing"
)

// docs/secrets.md names every kind of mark, and no mark is longer than what is looked for.
func TestKindsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/secrets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		if !strings.Contains(string(text), "`"+kind+"`") {
			t.Errorf("docs/secrets.md does not name the kind %s", kind)
		}
		if len(kind) > longestKind {
			t.Errorf("the kind %s has %d bytes, more than %d", kind, len(kind), longestKind)
		}
	}
}
