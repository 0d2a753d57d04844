// Records that are postponed: what is left of them when the daemon is killed, what clients see of them meanwhile, and
// what becomes of them on a full disk.

package daemon_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// lethal is the input of a tool whose first act is to kill the daemon, if the file is there; it removes the file.
type lethal struct {
	File   string `json:"file"`
	Writes bool   `json:"writes,omitempty"`
}

func lethalTool() tools.Tool {
	return tools.New(tools.Spec{Name: "Lethal"}, tools.Funcs[lethal]{
		Effects: func(m lethal) tools.Effects { return tools.Effects{Opaque: m.Writes, Reason: "it kills"} },
		Run: func(_ context.Context, _ *tools.Env, m lethal) (tools.Result, error) {
			if os.Remove(m.File) == nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return tools.Text("alive"), nil
		},
	})
}

// TestKilledBetweenStartAndAct: a call that may change something is recorded as started before its first act. One that
// only looks may leave nothing, but then its client has seen nothing either, and sending it again runs it.
func TestKilledBetweenStartAndAct(t *testing.T) {
	for _, writes := range []bool{true, false} {
		t.Run(fmt.Sprintf("writes=%v", writes), func(t *testing.T) {
			h := prepare(t, lethalTool()).outside()
			kill := h.spawn()
			file := h.file("f", "")
			input := fmt.Sprintf(`{"file":%q,"writes":%v}`, file, writes)
			c := h.join("s", free())
			c.use("m", "Lethal", input)
			if c.rest() == nil {
				t.Error("the stream has ended well, though the daemon was killed")
			}
			kill()
			h.start()
			kept := map[uint64]*tooldv1.ExecuteResponse{}
			for _, record := range h.records("s") {
				kept[record.GetSeq()] = record
			}
			for _, seen := range c.events {
				if seen.GetSeq() > 0 && !proto.Equal(seen, kept[seen.GetSeq()]) {
					t.Errorf("the client has seen %v, and kept is %v", seen, kept[seen.GetSeq()])
				}
			}
			result := resultsOf(h.records("s"))["m"]
			if writes {
				if !slices.Contains(story(h.records("s")), "m started") || !strings.Contains(result.GetContent()[0].GetText(), "may have had effects") {
					t.Errorf("%q and %v, want that it was started and may have had effects", story(h.records("s")), result)
				}
				return
			}
			c = h.join("s", nil)
			c.use("m", "Lethal", input)
			if result == nil {
				c.until("m OK")
				return
			}
			c.until("m INTERRUPTED interrupted")
		})
	}
}

// about returns what the client was sent about a call, in order.
func (c *conversation) about(id string) string {
	var told []string
	for _, line := range story(c.events) {
		if words := strings.Fields(line); words[0] == id {
			told = append(told, words[1])
		}
	}
	return strings.Join(told, ", ")
}

// TestPostponedIsNotShown: whoever asks for a call that runs is told what is recorded, and it is.
func TestPostponedIsNotShown(t *testing.T) {
	g := gateTool()
	h := prepare(t, g)
	h.start()
	c := h.join("s", free())
	for n := range 20 {
		name := fmt.Sprint(n)
		c.pass(name, reads)
		g.await(t, name)
		call, err := h.tools().GetCall(t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: name})
		if err != nil {
			t.Fatal(err)
		}
		want(t, call.GetState(), tooldv1.CallState_CALL_STATE_RUNNING)
		g.open(name)
		c.until(name + " OK")
		want(t, c.about(name), "accepted, started, OK")
	}
}

// TestReadIsRecordedAgain: what was read of a file that has changed is known after a restart, in each order of results.
func TestReadIsRecordedAgain(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		h := prepare(t)
		h.start()
		path := h.file("f", "one\n")
		options := free()
		options.OrderedResults = &ordered
		c := h.join("s", options)
		read := fmt.Sprintf(`{"file_path":%q}`, path)
		for n, text := range []string{"one\n", "two\n", "two\n", "three\n"} {
			h.file("f", text)
			id := fmt.Sprint("c", n)
			c.use(id, "Read", read)
			c.until(id + " OK")
		}
		c.cancel()
		h.stop()
		h.start()
		c = h.join("s", options)
		c.use("edit", "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"three","new_string":"four"}`, path))
		c.until("edit OK")
		h.stop()
	}
}

// TestUnchangedIsNotRecorded: the todo list is recorded again only when it is another one.
func TestUnchangedIsNotRecorded(t *testing.T) {
	h := prepare(t)
	h.start()
	c := h.join("s", free())
	const one, two = `{"todos":[{"content":"one","status":"pending","activeForm":"one"}]}`, `{"todos":[]}`
	for n, input := range []string{two, one, one, two, two, one} {
		id := fmt.Sprint("c", n)
		c.use(id, "TodoWrite", input)
		c.until(id + " OK")
	}
	c.endTurn()
	c.until("turn ")
	var changes []int
	for _, event := range c.events {
		if change := event.GetSessionChanged(); change.GetTodosChanged() {
			changes = append(changes, len(change.GetTodos()))
		}
	}
	if want := []int{1, 0, 1}; !slices.Equal(changes, want) {
		t.Errorf("lists with %v entries were recorded, want %v", changes, want)
	}
}
