package settings_test

import (
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/daemon/settings"
)

// docs/settings.md names every key: whole, or what stands of it behind one of its dots.
func TestKeysAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range settings.Keys() {
		named := false
		for rest, more := key, true; more && !named; _, rest, more = strings.Cut(rest, ".") {
			named = strings.Contains(string(text), "`"+rest+"`") || rest != key && strings.Contains(string(text), "`."+rest+"`")
		}
		if !named {
			t.Errorf("docs/settings.md does not name %s", key)
		}
	}
}
