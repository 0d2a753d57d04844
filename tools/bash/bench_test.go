package bash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/tools"
)

// BenchmarkTrue is `Bash true` against the same bash started by os/exec, each in turn, so that both meet the same
// machine. It reports medians and their ratio; "serial" also reports the shell's state.
func BenchmarkTrue(b *testing.B) {
	path, err := findBash()
	if err != nil {
		b.Fatal(err)
	}
	control := func() {
		if out, err := exec.Command(path, "--noprofile", "--norc", "-c", "true").CombinedOutput(); err != nil {
			b.Errorf("%v: %s", err, out)
		}
	}
	for name, command := range map[string]string{"concurrent": "true", "serial": "umask 22"} {
		b.Run(name, func(b *testing.B) {
			call := repeatable(b, command)
			var ours, theirs []time.Duration
			for b.Loop() {
				ours, theirs = append(ours, timed(call)), append(theirs, timed(control))
			}
			medians(b, ours, theirs)
		})
	}
}

// Benchmark64True is the same with 64 in flight: 256 calls against 256 of os/exec.
func Benchmark64True(b *testing.B) {
	path, err := findBash()
	if err != nil {
		b.Fatal(err)
	}
	call := repeatable(b, "true")
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, timed(func() { flood(call) }))
		theirs = append(theirs, timed(func() {
			flood(func() {
				if out, err := exec.Command(path, "--noprofile", "--norc", "-c", "true").CombinedOutput(); err != nil {
					b.Errorf("%v: %s", err, out)
				}
			})
		}))
	}
	medians(b, ours, theirs)
}

func flood(one func()) {
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 4 {
				one()
			}
		})
	}
	all.Wait()
}

// repeatable returns a function that makes one call after another of the command.
func repeatable(b *testing.B, command string) func() {
	s := newSession(b)
	action, err := Tool().Parse(fmt.Appendf(nil, `{"command":%q}`, command))
	if err != nil {
		b.Fatal(err)
	}
	env := s.room.Env(action)
	var mu sync.Mutex
	calls := 0
	return func() {
		mine := *env
		mu.Lock()
		calls++
		mine.CallID = fmt.Sprintf("call%d", calls)
		mu.Unlock()
		if _, err := action.Run(b.Context(), &mine); err != nil {
			b.Error(err)
		}
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func medians(b *testing.B, ours, theirs []time.Duration) {
	slices.Sort(ours)
	slices.Sort(theirs)
	mine, control := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(mine.Microseconds()), "µs-ours")
	b.ReportMetric(float64(control.Microseconds()), "µs-exec")
	b.ReportMetric(float64(mine)/float64(control), "ratio")
}

// BenchmarkCapture is how fast a call's output is taken, against `head | cat` into a file of the same disk.
func BenchmarkCapture(b *testing.B) {
	const size = "268435456"
	var ours, theirs []time.Duration
	s := newSession(b)
	for b.Loop() {
		ours = append(ours, timed(func() {
			if a := s.bash("head -c " + size + " /dev/zero"); a.err != nil {
				b.Fatal(a.err)
			}
		}))
		if err := os.RemoveAll(s.room.Env(nothing{}).Spool.Path()); err != nil {
			b.Fatal(err)
		}
		file := filepath.Join(b.TempDir(), "out")
		theirs = append(theirs, timed(func() {
			if err := exec.Command("sh", "-c", "head -c "+size+" /dev/zero | cat >"+file).Run(); err != nil {
				b.Fatal(err)
			}
		}))
		if err := os.Remove(file); err != nil {
			b.Fatal(err)
		}
	}
	medians(b, ours, theirs)
}

// nothing is an action that touches nothing.
type nothing struct{ tools.Action }

func (nothing) Effects() tools.Effects { return tools.Effects{} }
