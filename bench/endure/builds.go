// Many sessions that all want to build on few processors, and small calls beside them: what the machine's gate lets
// through, what it refuses, and how long the small calls take meanwhile, against the same calls on the same daemon before.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/bench/ledger"
	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/gate"
)

// A rush is many sessions that build at the same time.
type rush struct {
	sessions  int
	places    int           // limits.host_running_calls
	cpu       time.Duration // of a processor, that one build takes
	megabytes int           // that it takes
	span      time.Duration // how long each session builds again and again; 0: each builds once
	quiet     int           // how many small calls of each kind are measured before
	most      float64       // how many times its quiet 99th percentile that of a small call may be; 0: it is only printed
	limits    string        // of the daemon beside these, as members of an object with a comma in front
}

// wholeRush is the rush of "make builds".
var wholeRush = rush{sessions: 500, places: 2, cpu: 3 * time.Second, megabytes: 150, span: 3 * time.Minute, quiet: 200, most: 10}

// mostPerPlace is how many calls may run at once for each place, as docs/operating.md promises.
const mostPerPlace = 3

// sessionsPerLink is how many streams share a connection.
const sessionsPerLink = 50

// pause is how long the client of the small calls waits after one of each kind: it is one user, not a load.
const pause = 50 * time.Millisecond

// A yard is one run.
type yard struct {
	*server
	rush
	program string // the name of the copy of this program that builds
	links   []*toold.Conn

	mu      sync.Mutex // guards the rest
	built   int
	refused map[string]int // by what they waited for
	atOnce  int            // builds, at most
	least   int64          // bytes of memory that were available
}

// builds has the sessions build, and prints what came of it. The error is a violation if memory ran out, a call ended as it must not,
// more builds ran at once than the gate may let through, or a small call took too long.
func builds(ctx context.Context, binary string, r rush, out io.Writer) (err error) {
	y, err := newYard(binary, r)
	if err != nil {
		return err
	}
	defer func() { y.kill(); err = errors.Join(err, os.RemoveAll(y.dir)) }()
	killed := outOfMemory()
	small, err := y.attach(ctx, "small", ledger.New(), tooldv1.Role_ROLE_MAIN)
	if err != nil {
		return err
	}
	quiet, busy := timings{}, timings{}
	if err := small.round(y.trifles(), quiet, func(n int) bool { return n < r.quiet }); err != nil {
		return err
	}
	y.least = gate.ReadMachine("/").Available
	during, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	var failed error
	beside.Go(func() {
		failed = small.round(y.trifles(), busy, func(n int) bool { return n == 0 || during.Err() == nil })
	})
	beside.Go(func() { y.watch(during) })
	err = y.buildAll(ctx)
	end()
	beside.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	return errors.Join(y.report(out), y.compare(out, quiet, busy), y.survived(killed))
}

// newYard starts a daemon with the program that builds in its root.
func newYard(binary string, r rush) (*yard, error) {
	dir, err := os.MkdirTemp("", "builds")
	if err != nil {
		return nil, err
	}
	d, err := newServer(binary, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	y := &yard{server: d, rush: r, program: fmt.Sprint("build", os.Getpid()), refused: map[string]int{}}
	if err = y.prepare(); err == nil {
		err = d.start()
	}
	for n := 0; err == nil && n < r.sessions; n += sessionsPerLink {
		var link *toold.Conn
		link, err = wire.Dial(d.socket())
		y.links = append(y.links, link)
	}
	if err != nil {
		y.kill()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return y, nil
}

// prepare writes the settings, the file that is read, and the program.
func (y *yard) prepare() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	settings := filepath.Join(y.dir, "home", ".config/toold/settings.json")
	limits := fmt.Sprintf(`{"limits": {"sessions": %d, "host_running_calls": %d%s}}`, y.sessions+1, y.places, y.limits)
	return errors.Join(os.MkdirAll(filepath.Dir(settings), 0o700), os.WriteFile(settings, []byte(limits), 0o600),
		os.WriteFile(filepath.Join(y.root(), "read"), []byte("one line\n"), 0o600),
		os.WriteFile(filepath.Join(y.root(), y.program), program, 0o700))
}

// buildAll runs the sessions that build until each has ended.
func (y *yard) buildAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := context.Background()
	if y.span > 0 {
		var end context.CancelFunc
		over, end = context.WithTimeout(over, y.span)
		defer end()
	}
	var all sync.WaitGroup
	for n := range y.sessions {
		all.Go(func() {
			if err := y.build(ctx, over, n); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// build has one session build until over has ended, or once. What is refused is sent again after the time that the refusal names.
func (y *yard) build(ctx, over context.Context, number int) error {
	link := *y.server
	link.conn = y.links[number/sessionsPerLink]
	c, err := link.attach(ctx, fmt.Sprint("builds", number), ledger.New(), tooldv1.Role_ROLE_MAIN)
	if err != nil {
		return err
	}
	defer c.HangUp()
	stop := context.AfterFunc(over, c.HangUp)
	defer stop()
	command := fmt.Sprintf("./%s compile -cpu %s -megabytes %d", y.program, y.cpu, y.megabytes)
	for n := 0; over.Err() == nil; n++ {
		turn := []use{{"b" + strconv.Itoa(n), "Bash", map[string]any{"command": command}}}
		err := c.send(strconv.Itoa(n), turn)
		if err == nil {
			err = c.settle(strconv.Itoa(n), turn)
		}
		if err != nil {
			if over.Err() != nil { // it was hung up on
				return nil
			}
			return err
		}
		again, err := y.note(c.ledger.Results(strconv.Itoa(n))[turn[0].id])
		if err != nil || y.span == 0 {
			return err
		}
		select {
		case <-time.After(again):
		case <-over.Done():
		case <-ctx.Done():
		}
	}
	return nil
}

// note counts how a build has ended, and returns when the next one may be sent.
func (y *yard) note(call *ledger.Call) (again time.Duration, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	failure := call.Result.GetError()
	details := failure.GetDetails().AsMap()
	reason, _ := details["waits_for"].(string)
	retry, _ := details["retry_after_seconds"].(float64)
	switch {
	case call.Result.GetOutcome() == tooldv1.Outcome_OUTCOME_OK:
		y.built++
		return 0, nil
	case failure.GetCode() == busyCode && reason != "" && retry > 0:
		y.refused[reason]++
		return time.Duration(retry * float64(time.Second)), nil
	}
	return 0, violation{fmt.Errorf("a build ended as %s: %v", call.Result.GetOutcome(), failure)}
}

// watch looks, until ctx has ended, at how many builds run and how much memory there is.
func (y *yard) watch(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		running, available := named(y.program), gate.ReadMachine("/").Available
		y.mu.Lock()
		y.atOnce, y.least = max(y.atOnce, running), min(y.least, available)
		y.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// report prints what came of the builds.
func (y *yard) report(out io.Writer) error {
	peak, err := wire.Figure(y.cmd.Process.Pid, "VmHWM")
	y.mu.Lock()
	defer y.mu.Unlock()
	fmt.Fprintf(out, "%d sessions, %d places: %d builds ended well, %d were refused as host_busy %v, at most %d ran at once\n", y.sessions, y.places, y.built, sum(y.refused), y.refused, y.atOnce)
	fmt.Fprintf(out, "memory: at least %d MiB were available, the daemon took %d MiB at its peak, %d KiB for each session\n", y.least>>20, peak>>10, peak/int64(y.sessions))
	switch {
	case err != nil:
		return err
	case y.atOnce > mostPerPlace*y.places:
		return violation{fmt.Errorf("%d builds ran at once, with %d places", y.atOnce, y.places)}
	case y.built == 0, y.span == 0 && y.built+sum(y.refused) != y.sessions:
		return violation{fmt.Errorf("of %d sessions %d built and %d were refused", y.sessions, y.built, sum(y.refused))}
	}
	return nil
}

func sum(counts map[string]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// compare prints how long the small calls took, and what that is of their quiet time.
func (y *yard) compare(out io.Writer, quiet, busy timings) (err error) {
	if n := len(quiet[refusedCalls]) + len(busy[refusedCalls]); n > 0 {
		fmt.Fprintf(out, "%d small calls were refused\n", n)
		if y.most > 0 {
			return violation{fmt.Errorf("%d small calls were refused", n)}
		}
	}
	fmt.Fprintf(out, "| small call | quiet: calls, median, 99 %% | beside the builds: calls, median, 99 %% | median | 99 %% |\n|---|---|---|---|---|\n")
	for _, call := range y.trifles() {
		kind := call.id
		q, b := quiet[kind], busy[kind]
		if len(q) == 0 || len(b) == 0 { // all were refused
			continue
		}
		middle, high := ratio.Quantile(b, 0.5)/ratio.Quantile(q, 0.5), ratio.Quantile(b, 0.99)/ratio.Quantile(q, 0.99)
		fmt.Fprintf(out, "| %s | %s | %s | %.1f x | %.1f x |\n", kind, timed(q), timed(b), middle, high)
		if y.most > 0 && high > y.most {
			err = errors.Join(err, violation{fmt.Errorf("%s takes %.1f x its quiet time at the 99th percentile, and may take %.0f x", kind, high, y.most)})
		}
	}
	return err
}

func timed(seconds []float64) string {
	return fmt.Sprintf("%d, %s, %s", len(seconds), ratio.Duration(ratio.Quantile(seconds, 0.5)), ratio.Duration(ratio.Quantile(seconds, 0.99)))
}

// survived checks that no memory ran out, and that nothing of the builds is left when the daemon has ended.
func (y *yard) survived(killed int64) error {
	if now := outOfMemory(); now != killed {
		return violation{fmt.Errorf("the kernel has killed %d processes for want of memory", now-killed)}
	}
	if err := y.stop(); err != nil {
		return err
	}
	if n := named(y.program); n > 0 {
		return violation{fmt.Errorf("%d builds are left", n)}
	}
	return nil
}

// trifles are the small calls: one that only looks, one that starts a process which only reads, and one that changes.
func (d *server) trifles() []use {
	return []use{
		{"Read", "Read", map[string]any{"file_path": filepath.Join(d.root(), "read")}},
		{"Bash ls", "Bash", map[string]any{"command": "ls"}},
		{"Bash touch", "Bash", map[string]any{"command": "touch touched"}},
	}
}

// busyCode is the error of a call that the gate has refused.
const busyCode = "host_busy"

// refusedCalls is the kind of the small calls that the gate has refused.
const refusedCalls = "refused"

// timings are seconds that small calls took, by kind.
type timings map[string][]float64

// round makes the calls, whose ids are their kinds, again and again, one after the other, as long as more returns true for the
// number of the round.
func (c *client) round(calls []use, took timings, more func(n int) bool) error {
	for n := 0; more(n); n++ {
		if err := c.each(calls, took); err != nil {
			return err
		}
		<-time.After(pause)
	}
	return nil
}

// each makes the calls once, each in a turn of its own.
func (c *client) each(calls []use, took timings) error {
	for _, call := range calls {
		kind := call.id
		turn := fmt.Sprintf("%s, %p, %d, %d", kind, took, len(took[kind]), len(took[refusedCalls]))
		call.id = turn
		begun := time.Now()
		if err := errors.Join(c.sendUse(turn, call), c.endTurn(turn)); err != nil {
			return err
		}
		var result *tooldv1.ToolResult
		for result == nil {
			event, err := c.Recv()
			if err != nil {
				return err
			}
			result = event.GetToolResult()
		}
		switch {
		case result.GetError().GetCode() == busyCode:
			kind = refusedCalls
		case result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK:
			return violation{fmt.Errorf("%s ended as %s: %v", kind, result.GetOutcome(), result.GetError())}
		}
		took[kind] = append(took[kind], time.Since(begun).Seconds())
	}
	return nil
}

// named returns how many processes have the name. Only Linux shows them.
func named(name string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm") // the pattern is well-formed
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == name {
			n++
		}
	}
	return n
}

// outOfMemory returns how many processes the kernel has killed for want of memory. Only Linux counts them.
func outOfMemory() (n int64) {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if count, is := strings.CutPrefix(line, "oom_kill "); is {
			n, _ = strconv.ParseInt(strings.TrimSpace(count), 10, 64)
		}
	}
	return n
}
