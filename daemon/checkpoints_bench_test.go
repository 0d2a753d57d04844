package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkEdit is one Edit of a file of 20 KB from the client's side, to its result, with checkpoints and without.
func BenchmarkEdit(b *testing.B) {
	for _, bench := range []struct{ name, limits string }{{"kept", `"checkpoint_age": "24h"`}, {"off", `"checkpoint_bytes": 0`}} {
		b.Run(bench.name, func(b *testing.B) {
			h := prepare(b)
			h.limit(bench.limits)
			h.start()
			path := h.file("f", "count 0\n"+strings.Repeat("another line of the file\n", 800))
			c := h.join("s", free())
			c.do("read", "Read", fmt.Sprintf(`{"file_path":%q}`, path))
			var took []time.Duration
			n := 0
			for b.Loop() {
				since := time.Now()
				c.use(fmt.Sprint(n), "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"count %d\n","new_string":"count %d\n"}`, path, n, n+1))
				c.until(fmt.Sprint(n) + " OK")
				took = append(took, time.Since(since))
				n++
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
			c.endTurn()
			c.until("turn ")
		})
	}
}
