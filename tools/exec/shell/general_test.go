package shell

import "testing"

// TestGeneralOfNothing: a command without words stands for no other.
func TestGeneralOfNothing(t *testing.T) {
	for _, c := range append(Analyze("x=1; y=2").Commands, Command{Literal: true}) {
		if got := c.General(); got != "" {
			t.Errorf("%q is generalised to %q", c.Text, got)
		}
	}
}
