package daemon_test

import (
	"fmt"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// BenchmarkCall is one call from the client's side, to its result: what every call costs beside its tool's own work. The figures
// include the client's.
func BenchmarkCall(b *testing.B) {
	for _, bench := range []struct{ tool, input string }{{"TodoWrite", `{"todos":[]}`}, {"Read", `{"file_path":%q}`}} {
		b.Run(bench.tool, func(b *testing.B) {
			b.ReportAllocs()
			h := serve(b)
			input := bench.input
			if path := h.file("f", "a line\n"); bench.tool == "Read" {
				input = fmt.Sprintf(input, path)
			}
			c := h.join("s", free())
			n := 0
			for b.Loop() {
				c.use(fmt.Sprint(n), bench.tool, input)
				c.until(fmt.Sprint(n) + " OK")
				n++
			}
			c.endTurn()
			c.until("turn ")
		})
	}
}

// BenchmarkAttach is a stream that attaches to a new session. The figures include the client's.
func BenchmarkAttach(b *testing.B) {
	b.ReportAllocs()
	h := serve(b)
	n := 0
	for b.Loop() {
		h.join(fmt.Sprint(n), free())
		b.StopTimer() // to close it is not attaching
		if _, err := h.sessions().CloseSession(b.Context(), &tooldv1.CloseSessionRequest{SessionId: fmt.Sprint(n)}); err != nil {
			b.Fatal(err)
		}
		n++
		b.StartTimer()
	}
}
