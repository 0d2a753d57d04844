// The scripts in testdata/plan read like a page about the order of calls. A
// line is a comment (#), a command, or, indented, what the plan wants done after
// the command above it. Each file is played on one plan and compared with what
// came out; go test -run Script -update writes what came out.
//
//	add TURN [under CALL] CALL...   calls arrive, one after the other
//	end CALL...                     they end
//	fail CALL                       it ends and aborts its siblings
//	ask CALL / answered CALL        it goes outside / wants its slot back
//	alone CALL                      it wants to go on alone
//	cancel CALL | cancel turn TURN | interrupt [sparing CALL...] | drain | close
//	endturn TURN...
//	feed streaming | feed at end of turn
//	ordering batched | ordering dependency
//	look CALL [PATH]                it was looked at again, and touches PATH now
//	ahead TURN [under CALL] CALL    what it would wait for, the latest first
//	concurrency N                   of the session
//	limit N                         slots that the daemon has for this session
//	number TURN CALL...             the batches, by position
//
// A call is named after what it does, with digits to tell it from others. In the
// dependency ordering it touches the path behind a colon: what is serial changes
// it, what is concurrent reads it. Without a path a serial call touches everything,
// and a concurrent one nothing.

package scheduler

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the scripts' outcome into them")

var (
	concurrentCalls = []string{"Read", "Grep", "Bash(ls)", "Agent"}
	serialCalls     = []string{"Write", "Edit", "Bash(make)", "Bash(cd)"}
)

// A name is a task that is known by its name alone: a Plan never runs it.
type name struct {
	Task
	id   string
	turn uint64
}

func (n name) ID() string   { return n.id }
func (n name) Turn() uint64 { return n.turn }

func (n name) Concurrent() bool { return slices.Contains(concurrentCalls, kindOf(n.id)) }

// Aborts: of the calls in the scripts those of Bash abort their siblings.
func (n name) Aborts() bool { return strings.HasPrefix(n.id, "Bash") }

func (n name) Touches() Footprint { return n.at(pathIn(n.id)) }

// at returns what the call touches if its path leads there; "": it has none.
func (n name) at(path string) Footprint {
	switch {
	case n.Concurrent() && path == "":
		return Footprint{}
	case path == "":
		return Footprint{Everything: true}
	case n.Concurrent():
		return Footprint{Reads: []Place{{Path: "/" + path + "/"}}}
	}
	return Footprint{Writes: []Place{{Path: "/" + path + "/"}}}
}

func kindOf(id string) string {
	kind, _, _ := strings.Cut(id, ":")
	return strings.TrimRight(kind, "0123456789")
}

func pathIn(id string) string {
	_, path, _ := strings.Cut(id, ":")
	return strings.TrimRight(path, "0123456789")
}

func newName(t *testing.T, id string, turn uint64) name {
	kind := kindOf(id)
	if !slices.Contains(concurrentCalls, kind) && !slices.Contains(serialCalls, kind) {
		t.Fatalf("no such call: %q", id)
	}
	return name{id: id, turn: turn}
}

func TestScript(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (- as written, + as it came):\n%s", file, diff)
			}
		})
	}
}

type player struct {
	*testing.T
	plan  *Plan
	limit int
}

func play(t *testing.T, text string) string {
	p := player{T: t, plan: NewPlan(Streaming, DefaultConcurrency), limit: MaxConcurrency}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		out.WriteString(line)
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			for _, answer := range p.command(words) {
				fmt.Fprintf(&out, "\t%s\n", answer)
			}
		}
	}
	return out.String()
}

func (p *player) command(words []string) (answers []string) {
	args := words[1:]
	switch words[0] {
	case "add":
		p.add(args)
	case "end":
		for _, id := range args {
			if c := p.plan.calls[id]; c == nil || c.state != running {
				p.Fatalf("%q: %s does not run", words, id)
			}
			p.plan.Finish(id, nil)
			p.start()
		}
	case "fail":
		p.plan.Finish(args[0], cause(args[0]+" failed"))
	case "ask":
		p.plan.Leave(args[0])
	case "answered":
		p.plan.Return(args[0])
	case "alone":
		p.plan.Separate(args[0])
	case "cancel", "interrupt", "drain", "close":
		p.stop(words[0], args)
	case "endturn":
		for _, turn := range args {
			p.plan.EndTurn(p.number(turn))
		}
	case "feed":
		p.plan.SetFeed(map[string]Feed{"streaming": Streaming, "at end of turn": AtEndOfTurn}[strings.Join(args, " ")])
	case "ordering":
		p.plan.SetOrdering(map[string]Ordering{"batched": Batched, "dependency": Dependency}[args[0]])
	case "look":
		c := p.plan.calls[args[0]]
		if c == nil || !c.looking {
			p.Fatalf("%q: %s is not looked at", words, args[0])
		}
		p.plan.Looked(args[0], c.task.(name).at(append(args, pathIn(args[0]))[1]))
	case "ahead":
		turn, calls, parent := p.parse(args)
		return []string{strings.Join(p.plan.Ahead(newName(p.T, calls[0], turn), parent), " ")}
	case "concurrency":
		p.plan.SetConcurrency(int(p.number(args[0])))
	case "limit":
		p.limit = int(p.number(args[0]))
	case "number":
		return []string{p.batches(args)}
	default:
		p.Fatalf("no such command: %q", words)
	}
	p.start()
	return spell(p.plan)
}

func (p *player) start() {
	for p.plan.Start(p.limit - p.plan.Slots()) {
	}
}

func (p *player) add(args []string) {
	turn, calls, parent := p.parse(args)
	for _, id := range calls {
		p.plan.Add(newName(p.T, id, turn), parent)
	}
}

// parse takes "TURN [under CALL] CALL..." apart.
func (p *player) parse(args []string) (turn uint64, calls []string, parent string) {
	turn, calls = p.number(args[0]), args[1:]
	if calls[0] == "under" {
		parent, calls = calls[1], calls[2:]
	}
	return turn, calls, parent
}

func (p *player) stop(how string, args []string) {
	switch {
	case how == "drain":
		p.plan.Drain(cause("drained"))
	case how == "close":
		p.plan.Close(cause("closed"))
	case how == "interrupt":
		p.plan.StopTurns(cause("interrupted"), func(t Task) bool { return !slices.Contains(args, t.ID()) })
	case args[0] == "turn":
		p.plan.StopTurn(p.number(args[1]), cause("cancelled"), nil)
	default:
		p.plan.Stop(args[0], cause("cancelled"))
	}
}

func (p *player) batches(args []string) string {
	var (
		numbering Numbering
		batches   [][]string
	)
	for _, id := range args[1:] {
		n := numbering.Next(newName(p.T, id, p.number(args[0])))
		if n > len(batches) {
			batches = append(batches, nil)
		}
		batches[n-1] = append(batches[n-1], id)
	}
	spelt := make([]string, len(batches))
	for i, batch := range batches {
		spelt[i] = fmt.Sprint(batch)
	}
	return strings.Join(spelt, " ")
}

func (p *player) number(word string) uint64 {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

type cause string

func (c cause) Error() string { return string(c) }

// spell writes the plan's steps, like ones on one line.
func spell(p *Plan) (lines []string) {
	last := ""
	for step := range p.Steps {
		what := ""
		switch step.Kind {
		case StepStart:
			what = "start"
		case StepResume:
			what = "resume"
		case StepStop:
			what = "stop, " + step.Cause.Error() + ":"
		case StepLook:
			what = "look"
		case StepSkip:
			what = "skip, " + step.Cause.Error() + ":"
		case StepTurnEnded:
			lines, last = append(lines, fmt.Sprintf("turn %d has ended", step.Turn)), ""
			continue
		}
		if what != last {
			lines, last = append(lines, what), what
		}
		lines[len(lines)-1] += " " + step.Task.ID()
	}
	return lines
}

func TestStepsLeftOverAreKept(t *testing.T) {
	p := NewPlan(Streaming, 2)
	p.Add(newName(t, "Read1", 1), "")
	p.Add(newName(t, "Read2", 1), "")
	for p.Start(1) {
	}
	for step := range p.Steps {
		if got := step.Task.ID(); got != "Read1" {
			t.Fatalf("the first step is about %s, want Read1", got)
		}
		break
	}
	if got := spell(p); !slices.Equal(got, []string{"start Read2"}) {
		t.Fatalf("left over: %q, want the start of Read2", got)
	}
}

func TestFinishOfWhatDoesNotRunIsABug(t *testing.T) {
	p := NewPlan(Streaming, 1)
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "BUG: ") {
			t.Fatalf("recovered %q, want a BUG", got)
		}
	}()
	p.Finish("Read1", nil)
}

func TestNumberingBeginsAnewWithEachTurn(t *testing.T) {
	var n Numbering
	var got []int
	for _, c := range []name{
		newName(t, "Read1", 1), newName(t, "Edit1", 1), newName(t, "Read2", 1),
		newName(t, "Read3", 2), newName(t, "Read4", 2), newName(t, "Edit2", 3),
	} {
		got = append(got, n.Next(c))
	}
	if want := []int{1, 2, 3, 1, 1, 1}; !slices.Equal(got, want) {
		t.Fatalf("numbered %v, want %v", got, want)
	}
}
