package hook_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

// BenchmarkFor is what choosing costs each call, without hooks and with some that are for other tools.
func BenchmarkFor(b *testing.B) {
	set, errs := hook.Compile([]hook.Hook{
		{Event: hook.PreToolUse, Matcher: "Edit|Write|MultiEdit", Command: "a"},
		{Event: hook.PreToolUse, Matcher: "mcp__.*", Command: "b"},
		{Event: hook.PreToolUse, Matcher: "Bash", If: "Bash(git push *)", Command: "c"},
	})
	if len(errs) != 0 {
		b.Fatal(errs)
	}
	for name, set := range map[string]*hook.Set{"none": nil, "others": set} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if set.For(hook.PreToolUse, "Bash", func(permission.Rule) bool { return false }) != nil {
					b.Fatal("a hook was chosen")
				}
			}
		})
	}
}

// BenchmarkRun is one hook `true` against the same shell started by os/exec, each in turn, so that both meet the same
// machine. It reports medians and their ratio.
func BenchmarkRun(b *testing.B) {
	r := newRunner(b)
	hooks := scripts(hook.PreToolUse, "true")
	in := input(hook.PreToolUse)
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		if result := r.Run(b.Context(), hooks, in); len(result.Failures) != 0 {
			b.Fatal(result.Failures)
		}
		ours = append(ours, time.Since(start))
		start = time.Now()
		if out, err := exec.Command("/bin/sh", "-c", "true").CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		theirs = append(theirs, time.Since(start))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, control := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(mine.Microseconds()), "µs-ours")
	b.ReportMetric(float64(control.Microseconds()), "µs-exec")
	b.ReportMetric(float64(mine)/float64(control), "ratio")
}
