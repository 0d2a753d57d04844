package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// golden compares a picture with the one in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

var update = flag.Bool("update", false, "write the golden files again")

func textResult(o tooldv1.Outcome, text string) *tooldv1.ToolResult {
	return &tooldv1.ToolResult{
		Outcome: o, IsError: o != tooldv1.Outcome_OUTCOME_OK,
		Content: []*tooldv1.Content{{Block: &tooldv1.Content_Text{Text: text}}},
	}
}
