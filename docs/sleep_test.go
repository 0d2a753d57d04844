package docs_test

import (
	"strings"
	"testing"
)

// No test sleeps to synchronise: a test that sleeps does it where time stands still, in a synctest bubble.
func TestNobodySleeps(t *testing.T) {
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text := document(t, name)
		if strings.Contains(text, "time.Sleep"+"(") && !strings.Contains(text, `"testing/synctest"`) {
			t.Errorf("%s sleeps on the real clock: wait for what it waits for", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
