// Running the probe: its report is joined with what was seen outside.

package escape

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// A Start runs argv with env, as the starter would pass it on, in dir, and returns what it printed
// on stdout. The user is the scene's.
type Start func(argv, env []string, dir string) (stdout string, err error)

// Run starts the probe on a scene, once, and returns the doors in the order of the probe. What goes
// wrong beside the doors, such as doors without a line, is an error of the test. The victim ends
// with it: a scene serves one run.
func Run(t testing.TB, s *Scene, start Start, named ...string) []Door {
	t.Helper()
	plain, err := json.Marshal(s.Scene)
	check(t, err)
	came := make(chan os.Signal, 64)
	for _, n := range s.Signals {
		signal.Notify(came, syscall.Signal(n))
	}
	defer signal.Stop(came)
	s.before = s.look()
	stdout, err := start(append([]string{s.Program, string(plain)}, named...), s.environ(), s.Root)
	if err != nil {
		t.Errorf("starting the probe: %v\n%s", err, stdout)
	}
	if err := s.drain(); err != nil {
		t.Errorf("a listener of the scene no longer listens: %v", err)
	}
	s.compare()
	s.victimSaw()
	s.besideSaw()
	s.starterSaw(came)
	s.leftBehind()
	told, err := results(stdout)
	if err != nil {
		t.Errorf("the probe's lines: %v", err)
	}
	if len(named) == 0 && len(told) != len(s.listed) {
		t.Errorf("the probe told of %d doors, and has %d", len(told), len(s.listed))
	}
	doors := make([]Door, 0, len(told))
	for _, r := range told {
		doors = append(doors, s.verdict(r))
	}
	return doors
}

// Others are the programs that run beside the probe, by the directory in the root that is theirs. Who starts the probe starts
// them before, waits until each says that it is ready, and writes the number of each into "pid" in its directory.
func (s *Scene) Others() map[string][]string {
	return map[string][]string{
		s.Beside: {s.Program, "beside", s.Beside, s.BesideAbstract, ""},
		s.Left:   {s.Program, "beside", s.Left, s.LeftAbstract, s.Outside},
	}
}

// verdict takes what the suite saw for the truth where it can see, and what the probe says elsewhere. An effect that is seen
// though the probe says that there was none counts in any case.
func (s *Scene) verdict(r scene.Result) Door {
	seen := s.seen.of(scene.Slug(r.Door))
	d := Door{Name: r.Door, Group: r.Group, Open: r.Open, Inside: r.Detail, Seen: seen}
	switch {
	case seen != "":
		d.Open = true
	case r.Outside && r.Open:
		d.Open, d.Inside = false, r.Detail+", without effect outside"
	}
	return d
}

func (s *Scene) starterSaw(came <-chan os.Signal) {
	for {
		select {
		case got := <-came:
			if n, ok := got.(syscall.Signal); ok {
				s.signalled(int(n), "the starter")
			}
		default:
			return
		}
	}
}

func (s *Scene) signalled(n int, who string) {
	for door, number := range s.Signals {
		if number == n {
			s.seen.note(scene.Slug(door), fmt.Sprintf("%s got signal %d", who, n))
		}
	}
}

// results reads the probe's lines.
func results(stdout string) ([]scene.Result, error) {
	var all []scene.Result
	for line := range strings.Lines(stdout) {
		var r scene.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return all, fmt.Errorf("%q: %w", line, err)
		}
		all = append(all, r)
	}
	return all, nil
}
