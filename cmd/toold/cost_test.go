package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A budget is what a read-only call may cost on average, beyond what it does itself. todo is a TodoWrite of nothing, and
// read a Read of a file of one line.
//
// A change that lowers a cost lowers its budget here. One that raises a budget gives the reason in its commit.
type budget struct {
	name       string
	todo, read float64
	goal       float64 // where the budget of a TodoWrite is to come
	of         func(*costs) float64
	look       string // how to find out where it goes
}

const (
	lookProfile = "make cost KEEP=DIR, then go tool pprof -sample_index=alloc_objects -top DIR/*.alloc"
	lookStrace  = "make cost KEEP=DIR, then read DIR/*.strace between the lines that write 636f756e74656420 (\"counted \")"
	lookTrace   = "make cost KEEP=DIR, then go tool trace DIR/*.trace"
)

// The goals are those of the daemon's own part. A Read looks at each directory on the way to its file besides, opens the
// file, and looks at it again before it reads.
var budgets = []budget{
	{"allocations", 186, 243, 150, func(c *costs) float64 { return c.objects }, lookProfile},
	{"bytes allocated", 18 << 10, 24 << 10, 16 << 10, func(c *costs) float64 { return c.bytes }, lookProfile},
	{"goroutine switches", 12, 12, 10, func(c *costs) float64 { return c.switches }, lookTrace},
	{"futex calls", 14, 16, 10, func(c *costs) float64 { return c.futexes }, lookTrace},
	{"file-system calls", 3, 15, 3, func(c *costs) float64 { return c.files }, lookStrace},
	{"transactions of the journal", 2, 3, 1, func(c *costs) float64 { return c.transactions }, lookStrace},
	{"writes to the journal's files", 9, 12, 3, func(c *costs) float64 { return c.writes }, lookStrace},
	{"syncs of the journal", 0, 0, 0, func(c *costs) float64 { return c.syncs }, lookStrace},
	{"reads of the journal's records", 0, 0, 0, func(c *costs) float64 { return c.reads }, lookTrace},
}

// TestCostOfACall holds what a call costs the daemon, one call after the other, against budgets. They are counts and
// never times, so that they are nearly the same on a busy machine. Each is the average over many calls, in the round of three in
// which it was the least: what the daemon does now and then by itself is not counted. What strace counts is of one round of 100
// calls. There a call on a busy machine takes longer than its records are postponed, which its budgets of transactions and writes allow.
func TestCostOfACall(t *testing.T) {
	program := countedProgram(t)
	for _, call := range []struct {
		name, tool, input string
		budget            func(budget) float64
	}{
		{"TodoWrite of nothing", "TodoWrite", `{"todos":[]}`, func(b budget) float64 { return b.todo }},
		{"Read of one line", "Read", `{"file_path":"$ROOT/line.txt"}`, func(b budget) float64 { return b.read }},
	} {
		t.Run(call.name, func(t *testing.T) {
			c := measureCosts(t, program, call.tool, call.input)
			var table strings.Builder
			for _, b := range budgets {
				got := b.of(c)
				fmt.Fprintf(&table, "%-32s %8.1f  budget %8.0f  goal %6.0f\n", b.name, got, call.budget(b), b.goal)
				// Half a count is what the daemon's own timers may add.
				if got > call.budget(b)+0.5 {
					t.Errorf("a %s costs %.1f %s; its budget is %.0f.\nWhere they go: %s", call.name, got, b.name, call.budget(b), b.look)
				}
			}
			t.Logf("a %s costs\n%s", call.name, table.String())
		})
	}
}

// costs are averages of one call.
type costs struct {
	objects, bytes              float64 // allocated
	switches, reads             float64 // goroutines that began to run again; queries for records
	files, futexes              float64 // system calls
	transactions, writes, syncs float64 // of the journal
}

const (
	warming = 100 // calls at once, until nothing grows any more
	// settled is when the directories are so old that what is remembered of them holds: half a second
	// more than the daemon asks for.
	settled = 2500 * time.Millisecond
	rounds  = 3
	counted = 300 // calls of a round
	straced = 100 // calls under strace, which are slow
)

// measureCosts makes the calls against one daemon that is asked for its own counts, and against one under strace.
func measureCosts(t *testing.T, program, tool, input string) *costs {
	t.Helper()
	least := costs{objects: math.Inf(1), bytes: math.Inf(1), switches: math.Inf(1), reads: math.Inf(1)}
	d := startCounted(t, program, false)
	d.warm(tool, input)
	for range rounds {
		objects, bytes := d.ask("count")
		d.calls(counted, tool, input)
		objectsAfter, bytesAfter := d.ask("count")
		least.objects = min(least.objects, float64(objectsAfter-objects)/counted)
		least.bytes = min(least.bytes, float64(bytesAfter-bytes)/counted)
	}
	d.ask("profile " + d.kept("alloc"))
	for range rounds {
		d.ask("trace " + d.kept("trace"))
		d.calls(counted, tool, input)
		d.ask("stop")
		switches, reads := tracedCosts(t, d.kept("trace"), counted)
		least.switches, least.reads = min(least.switches, switches), min(least.reads, reads)
	}

	d = startCounted(t, program, true)
	d.warm(tool, input)
	d.ask("mark")
	d.calls(straced, tool, input)
	d.ask("mark")
	least.addStraced(t, d.kept("strace"), straced)
	return &least
}

// countedProgram returns this test's program as the command that is called "counted". Under the race detector it is built
// without: the detector allocates, and drops what pools hold.
func countedProgram(t *testing.T) string {
	t.Helper()
	path := lookCounted(t)
	if !underRace() {
		return path
	}
	path = filepath.Join(t.TempDir(), "counted")
	cmd := goTestCompile(path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return path
}
