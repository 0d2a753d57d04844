package nearest_test

import (
	"testing"

	"github.com/toold/toold/tools/text/nearest"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"Bash", "bash", 0}, {"kitten", "sitting", 3}, {"alow", "allow", 1}, {"deny", "dney", 2},
	} {
		if got := nearest.Distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := nearest.Distance(c.b, c.a); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
