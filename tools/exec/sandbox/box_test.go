package sandbox

import (
	"slices"
	"testing"
)

// TestBoxIsPreparedOnce: what a box is completed with counts for everything that reads it, and it is completed once.
func TestBoxIsPreparedOnce(t *testing.T) {
	prepared := 0
	fresh := func() *Box {
		prepared = 0
		return &Box{Fill: func(b *Box) {
			prepared++
			b.Policy, b.Set = Policy{Tier: Full, Session: "s"}, []string{"A=1"}
			b.AddBefore(func(Alteration) {})
		}}
	}
	for name, use := range map[string]func(*Box){
		"Ready":   func(b *Box) { b.Ready() },
		"Environ": func(b *Box) { b.Environ(nil) },
		"Under":   func(b *Box) { b.Under(Policy{}) },
	} {
		b := fresh()
		use(b)
		use(b)
		if got := b.Environ(nil); b.Policy.Session != "s" || !slices.Equal(got, []string{"A=1"}) || prepared != 1 {
			t.Errorf("%s: policy %v, environment %q, prepared %d times; want it once", name, b.Policy, got, prepared)
		}
		if b.Under(Policy{}).Before == nil {
			t.Errorf("%s: what reports changes did not pass to the box made by Under", name)
		}
	}
}
