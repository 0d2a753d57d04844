package daemon_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRecording is one command from the client's side, to its result: with what it changes recorded while it runs,
// and without checkpoints. The least time counts: machines do other things as well.
func BenchmarkRecording(b *testing.B) {
	for _, command := range []struct{ name, prepare, script string }{
		{"nothing", "true", ":"},
		{"ignored", "[ -e out ] || { git init -q; echo out/ > .gitignore; mkdir out; touch out/{1..2000}.o; }", "for i in {1..2000}; do : > out/$i.o; done"},
		{"new", "rm -rf out; mkdir out", "for i in {1..200}; do : > out/$i.o; done"},
		{"removed", "mkdir out; for i in {1..2000}; do printf '%03000d' $i$RANDOM > out/$i; done", "find out -delete"},
		{"rewritten", "[ -e out ] || mkdir out; for i in {1..1000}; do printf '%03000d' $i > out/$i; done", "for i in {1..1000}; do echo > out/$i; done"},
	} {
		for _, bench := range []struct{ name, limits string }{{"kept", `"checkpoint_age": "24h"`}, {"off", `"checkpoint_bytes": 0`}} {
			b.Run(command.name+"/"+bench.name, func(b *testing.B) {
				h := prepare(b)
				h.limit(bench.limits)
				h.start()
				c := h.join("s", free())
				least := time.Hour
				n := 0
				for b.Loop() {
					b.StopTimer()
					h.sh(command.prepare)
					h.file("script", command.script)
					b.StartTimer()
					since := time.Now()
					c.use(fmt.Sprint(n), "Bash", bashInput("bash script"))
					c.until(fmt.Sprint(n) + " OK")
					least = min(least, time.Since(since))
					n++
				}
				b.ReportMetric(float64(least.Microseconds())/1000, "ms-least")
				c.endTurn()
				c.until("turn ")
			})
		}
	}
}
