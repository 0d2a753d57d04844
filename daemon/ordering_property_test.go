// The dependency order as a whole: whatever a turn holds, its files and results are those of the same calls run one by one.

package daemon_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/tooltest"
)

// TestDependencyIsSerial runs made-up turns twice: in the dependency order, and one by one in a copy of the workspace. With
// TOOLD_ALL it tries 10,000 turns, else 40.
func TestDependencyIsSerial(t *testing.T) {
	turns := tooltest.Times(40, 10_000)
	const sessions = 4
	for n := range sessions {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			p := newPair(t)
			r := rand.New(rand.NewPCG(seed, 1))
			least := turns / sessions // and more while nothing has run beside each other: calls are short on a busy machine
			for turn := 1; turn <= least || p.beside == 0 && turn <= max(500, 10*least); turn++ {
				p.play(turn, madeUpTurn(r, turn))
			}
			if p.beside == 0 {
				t.Error("no two calls that write have run beside each other")
			}
		})
	}
}

// A pair is two sessions with the same files, whose calls run one by one, or by what they depend on.
type pair struct {
	*testing.T
	serial, dependent *conversation
	roots             [2]string
	beside            int // calls that a BATCHED order would have kept waiting
}

func newPair(t *testing.T) *pair {
	h := prepare(t)
	// What is synced to the disk is another test's subject, and most of the time.
	if err := os.WriteFile(h.settings, []byte(`{"journal":{"sync":"normal"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	p := &pair{T: t, roots: [2]string{filepath.Join(h.root, "s"), filepath.Join(h.root, "d")}}
	for _, root := range p.roots {
		for _, dir := range []string{"d", "e/f"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b", "d/a", "e/f/a"} {
			if err := os.WriteFile(filepath.Join(root, name), []byte("0\nof "+name+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range map[string]string{"la": "a", "ld": "d", "d/lb": "../b", "nowhere": "d/late"} {
			if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(filepath.Join(root, "b"), filepath.Join(root, "e/hard")); err != nil {
			t.Fatal(err)
		}
	}
	one := int32(1)
	none := tooldv1.SiblingAbort_SIBLING_ABORT_NONE.Enum()
	p.serial, p.dependent = h.converse(), h.converse()
	p.serial.attach(&tooldv1.Attach{SessionId: "s", Roots: p.roots[:1], Options: free(&tooldv1.Options{MaxConcurrency: &one, SiblingAbort: none})})
	p.dependent.attach(&tooldv1.Attach{SessionId: "d", Roots: p.roots[1:], Options: dependent()})
	return p
}

// madeUp is one call; ROOT in its input is the session's root.
type madeUp struct{ name, input string }

func madeUpTurn(r *rand.Rand, turn int) (calls []madeUp) {
	files := []string{"a", "b", "la", "d/a", "ld/a", "d/lb", "e/f/a", "e/hard", "nowhere", "d/late", "d/new", "ld/new", "e/x/y"}
	for n := range 3 + r.IntN(6) {
		file := files[r.IntN(len(files))]
		dir := []string{".", "d", "ld", "e"}[r.IntN(4)]
		value := turn*10 + n
		c := madeUp{"Read", fmt.Sprintf(`{"file_path":"ROOT/%s"}`, file)}
		switch r.IntN(20) {
		case 0, 1, 2, 3:
			c = madeUp{"Write", fmt.Sprintf(`{"file_path":"ROOT/%s","content":"%d\n"}`, file, value)}
		case 4, 5, 6, 7, 8, 9:
			c = madeUp{"Edit", editInput(file, value)}
		case 10, 11:
			c = madeUp{"Grep", fmt.Sprintf(`{"pattern":"%d","path":"ROOT/%s","output_mode":"content"}`, value%3, dir)}
		case 13:
			c = madeUp{"Glob", fmt.Sprintf(`{"pattern":"**/*a*","path":"ROOT/%s"}`, dir)}
		case 14:
			if r.IntN(5) == 0 {
				c = madeUp{"Bash", bashInput([]string{
					"cat " + file, "rm -f " + file, "ln -sfn e ld; cat ld/f/a", "ln -sfn d ld", "mv d m; mv e d; mv m e", "ln -f a e/hard", "ls -R " + dir,
				}[r.IntN(7)])}
			}
		}
		calls = append(calls, c)
	}
	return calls
}

// editInput replaces every 0 of a file by a 1, or every 1 by a 0, and says beside it which call did so. The number of the two
// together stays the same: a text that holds itself twice would double a file with every edit.
func editInput(file string, value int) string {
	by := strings.NewReplacer("0", "8", "1", "9").Replace(fmt.Sprint(value))
	return fmt.Sprintf(`{"file_path":"ROOT/%s","old_string":"%d","new_string":"%d%s","replace_all":true}`, file, value%2, 1-value%2, by)
}

// play runs a turn in both sessions, and compares.
func (p *pair) play(turn int, calls []madeUp) {
	p.Helper()
	var came [2]map[string]string
	for i, c := range []*conversation{p.serial, p.dependent} {
		c.events = nil
		for n, call := range calls {
			c.use(fmt.Sprintf("%d-%d", turn, n), call.name, strings.ReplaceAll(call.input, "ROOT", p.roots[i]))
		}
		c.endTurn()
		came[i] = map[string]string{}
		for id, result := range c.results() {
			came[i][id] = strings.ReplaceAll(shown(result), p.roots[i], "ROOT")
		}
	}
	p.beside += overlaps(p.dependent.events, calls)
	files := [2]map[string]string{picture(p, p.roots[0]), picture(p, p.roots[1])}
	if maps.Equal(came[0], came[1]) && maps.Equal(files[0], files[1]) {
		return
	}
	want(p, came[1], came[0])
	want(p, files[1], files[0])
	for n, call := range calls {
		p.Logf("%d %s %s", n, call.name, call.input)
	}
	p.Fatalf("turn %d: %q", turn, story(p.dependent.events))
}

// shown is the outcome and the text of a result, without what depends on which of two calls that do not conflict has ended
// last: which file is the newest, by which some tools sort, and of which the session still has the text that was read.
func shown(result *tooldv1.ToolResult) string {
	lines := []string{result.GetOutcome().String()}
	for _, block := range result.GetContent() {
		text, _, _ := strings.Cut(block.GetText(), " What had changed")
		lines = append(lines, strings.Split(text, "\n")...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// overlaps counts the writes that began while another had begun and not ended.
func overlaps(events []*tooldv1.ExecuteResponse, calls []madeUp) (count int) {
	running := map[string]bool{}
	for _, event := range events {
		var turn, n int
		if started := event.GetStarted(); started != nil {
			if _, err := fmt.Sscanf(started.GetToolUseId(), "%d-%d", &turn, &n); err == nil && (calls[n].name == "Edit" || calls[n].name == "Write") {
				running[started.GetToolUseId()] = true
				count += min(1, len(running)-1)
			}
		}
		delete(running, event.GetToolResult().GetToolUseId())
	}
	return count
}
