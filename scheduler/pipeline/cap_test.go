package pipeline

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/spool"
)

// TestCapped: what is left out is counted, and the whole of it is in the file that the line names.
func TestCapped(t *testing.T) {
	image := tools.Block{Image: &tools.Blob{MediaType: "image/png"}}
	for _, test := range []struct {
		name    string
		max     int
		content []tools.Block
		want    []tools.Block // FILE stands for the file's path
		spill   tools.Spill
	}{
		{"fits", 6, []tools.Block{{Text: "äöü"}, {Text: "abc"}}, []tools.Block{{Text: "äöü"}, {Text: "abc"}}, tools.Spill{}},
		{"whole lines", 6, []tools.Block{{Text: "a\nb\nccc\nd\n"}}, []tools.Block{{Text: "a\nb\n\n[2 lines (6 bytes) left out; the whole is in FILE]"}}, tools.Spill{Bytes: 6, Lines: 2}},
		{"one long line", 3, []tools.Block{{Text: "äöüß"}}, []tools.Block{{Text: "äöü\n[1 lines (2 bytes) left out; the whole is in FILE]"}}, tools.Spill{Bytes: 2, Lines: 1}},
		{
			"in the second block, and none after it", 5,
			[]tools.Block{{Text: "abc"}, image, {Text: "d\ne\nf"}, {Text: "g"}, image},
			[]tools.Block{{Text: "abc"}, image, {Text: "d\n\n[2 lines (4 bytes) left out; the whole is in FILE]"}, image},
			tools.Spill{Bytes: 4, Lines: 2},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder, err := spool.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var whole strings.Builder
			for _, block := range test.content {
				whole.WriteString(block.Text)
			}
			got := capped(tools.Result{Content: test.content}, test.max, folder, "call")
			var spill tools.Spill
			if got.Spill != nil {
				spill = *got.Spill
				kept, err := os.ReadFile(spill.Path)
				if err != nil || string(kept) != whole.String() {
					t.Errorf("the file holds %q (%v), want %q", kept, err, &whole)
				}
				for i := range got.Content {
					got.Content[i].Text = strings.ReplaceAll(got.Content[i].Text, spill.Path, "FILE")
				}
				spill.Path = ""
			}
			if diff := cmp.Diff(test.want, got.Content); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			if spill != test.spill {
				t.Errorf("spill %v, want %v", spill, test.spill)
			}
		})
	}
}
