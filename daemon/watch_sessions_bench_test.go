package daemon_test

import (
	"fmt"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// BenchmarkOverview is what a page costs twice a second while nothing changes: all sessions are described and compared.
func BenchmarkOverview(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := prepare(b)
			h.limit(fmt.Sprintf(`"sessions": %d`, n+1))
			h.start()
			for i := range n {
				c := h.converse()
				c.attach(&tooldv1.Attach{SessionId: fmt.Sprint("s", i), Roots: []string{h.root}})
				if err := c.rest(); err != nil {
					b.Fatal(err)
				}
			}
			changes := h.d.Overview()
			b.ReportAllocs()
			for b.Loop() {
				if err := changes(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
