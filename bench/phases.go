// Where the time of a call goes: a daemon of its own writes a trace of its runtime, in which the phases of a call are
// regions, and each moment counts for one of them.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/exp/trace"

	"github.com/toold/toold/bench/wire"
)

// phases are those of a call, in its order. transport is what is in none of them: gRPC, the kernel, the client. queue is
// from the acceptance to the call's turn.
var phases = []struct{ name, what string }{
	{"transport", "gRPC on both sides, the kernel, the client"},
	{"decode", "the input is parsed and checked"},
	{"accept", "turn, index, batch; the record is appended"},
	{"queue", "the scheduler, until the call's turn"},
	{"settings", "the settings and rules in force"},
	{"verdict", "paths, the tool's check, rules"},
	{"policy", "the sandbox policy"},
	{"start", "Started is appended, and waited for where it must be"},
	{"act", "the tool"},
	{"call", "the rest of the pipeline"},
	{"record", "the result is appended, with what it changes"},
	{"journal", "transactions"},
	{"send", "records become messages"},
}

// claims are the phases in the order in which they claim a moment that several share: who waits gives way to what is waited
// for, and what happens beside a call to the call.
var claims = []string{"decode", "settings", "policy", "act", "journal", "accept", "verdict", "start", "record", "call", "queue", "send"}

const (
	phaseWarming = 200
	phaseCalls   = 1000
)

// measurePhases prints the table of one no-op call and of one Read.
func measurePhases(ctx context.Context, toold, dir string) error {
	file := filepath.Join(dir, "phases.txt")
	if err := os.WriteFile(file, []byte("one line\n"), 0o600); err != nil {
		return err
	}
	var tables [2]map[string]time.Duration
	for i, call := range [][2]string{{"TodoWrite", `{"todos":[]}`}, {"Read", fmt.Sprintf(`{"file_path":%q}`, file)}} {
		name := filepath.Join(dir, "trace")
		if err := tracedCalls(ctx, toold, dir, name, call[0], call[1]); err != nil {
			return err
		}
		var err error
		if tables[i], err = phasesIn(name); err != nil {
			return err
		}
	}
	fmt.Println("\n| phase of a call, one in flight, while traced | TodoWrite of nothing | Read of a line |\n|---|---|---|")
	var sums [2]time.Duration
	for _, phase := range phases {
		fmt.Printf("| %s: %s | %.1f us | %.1f us |\n", phase.name, phase.what, micros(tables[0][phase.name]), micros(tables[1][phase.name]))
		sums[0] += tables[0][phase.name]
		sums[1] += tables[1][phase.name]
	}
	fmt.Printf("| together | %.1f us | %.1f us |\n", micros(sums[0]), micros(sums[1]))
	return nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / phaseCalls }

// tracedCalls has a daemon write a trace of the calls, and ends it.
func tracedCalls(ctx context.Context, toold, dir, file, tool, input string) (err error) {
	dir, err = os.MkdirTemp(dir, "traced")
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "toold.sock")
	cmd := exec.CommandContext(ctx, toold, "serve", "--socket", socket, "--root", dir, "--trace", file)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	stop := func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err = errors.Join(err, cmd.Wait())
	}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		stop()
		return err
	}
	daemon, err := wire.Connect(socket, cmd.Process.Pid, stop)
	if err != nil {
		return err
	}
	defer daemon.Stop()
	t, err := wire.StartTalk(ctx, daemon, "", filepath.Dir(dir))
	if err == nil {
		_, _, err = t.Calls(phaseWarming+phaseCalls, 1, tool, input)
	}
	if err == nil {
		t.HangUp()
	}
	return err
}

// phasesIn returns the time of each phase, of all calls of a trace but those that warm up.
func phasesIn(file string) (map[string]time.Duration, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return nil, err
	}
	sweep := sweep{open: map[string]int{}, times: map[string]time.Duration{}}
	for {
		event, err := r.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch event.Kind() {
		case trace.EventRegionBegin:
			sweep.at(event.Time(), event.Region().Type, true)
		case trace.EventRegionEnd:
			sweep.at(event.Time(), event.Region().Type, false)
		}
	}
	if want := phaseWarming + phaseCalls; sweep.calls != want {
		return nil, fmt.Errorf("the trace has %d calls instead of %d", sweep.calls, want)
	}
	return sweep.times, nil
}

// A sweep goes through the beginnings and ends of regions in the order of time.
type sweep struct {
	last  trace.Time
	open  map[string]int // how many of each phase are under way
	calls int            // that have begun to be accepted
	times map[string]time.Duration
}

// at takes note that a phase begins or ends. The time since the last note goes to the phase that claims it.
func (s *sweep) at(now trace.Time, phase string, begins bool) {
	if s.calls > phaseWarming {
		s.times[s.claimed()] += now.Sub(s.last)
	}
	s.last = now
	switch {
	case !begins:
		s.open[phase]--
		return
	case phase == "decode": // only a tool use is decoded
		s.calls++
		s.open["queue"] = 1
	case phase == "call":
		s.open["queue"] = 0
	}
	s.open[phase]++
}

func (s *sweep) claimed() string {
	i := slices.IndexFunc(claims, func(phase string) bool { return s.open[phase] > 0 })
	if i < 0 {
		return "transport"
	}
	return claims[i]
}
