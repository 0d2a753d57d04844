package main

// What a result says of a command beside its exit: the order of its outputs, the outputs themselves, its memory. What the text
// of a result looks like is not known here.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestMergedOutput(t *testing.T) { merged(t, ordinary(t)) }

func TestMergedOutputWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	merged(t, ordinary(t))
}

// merged: through one pipe the order of stdout and stderr is exact, in either tier; through two each is told as it was printed.
func merged(t *testing.T, h *house) {
	t.Helper()
	c := h.attach(t, in(h.room(t, "merged", nil), nil))
	var exact strings.Builder
	for i := range 300 {
		fmt.Fprintf(&exact, "o%de%d\nO%d\nE%d\n", i, i, i, i)
	}
	const script = "for ((i = 0; i < 300; i++)); do printf o$i; printf \"e$i\\n\" >&2; echo O$i; echo E$i >&2; done"
	for name, tail := range map[string]string{"only reads": "", "writes": "; touch f"} {
		r := c.call(name, map[string]any{"command": script + tail, "merged_output": true})
		if textIn(r) != exact.String() {
			t.Errorf("%s: the order is another:\n%.300s", name, textIn(r))
		}
		of := r.GetStructured().AsMap()
		expect(t, name, fmt.Sprint(of["merged_output"], of["stdout"], of["stderr"], of["stderr_bytes"], of["stdout_bytes"]), fmt.Sprint(true, nil, nil, 0, exact.Len()))
		r = c.call(name+", apart", map[string]any{"command": "echo out; printf '\\033[1mno\\n' >&2" + tail})
		of = r.GetStructured().AsMap()
		expect(t, name, fmt.Sprintf("%v %q %q", of["merged_output"], of["stdout"], of["stderr"]), `<nil> "out\n" "\x1b[1mno\n"`)
	}
	r := c.call("long", map[string]any{"command": "head -c 4096 /dev/zero | tr '\\0' x; head -c 4097 /dev/zero | tr '\\0' x >&2; exit 3"})
	of := r.GetStructured().AsMap()
	if text, _ := of["stdout"].(string); len(text) != 4096 || of["stderr"] != nil || outcome(r) != "ERROR exit_code" {
		t.Errorf("%s with %d bytes of stdout, and %v", outcome(r), len(text), of["stderr"])
	}
	r = c.call("bytes", map[string]any{"command": "printf 'a\\377'"})
	expect(t, "what is no text", fmt.Sprint(r.GetStructured().AsMap()["stdout"], textIn(r)), "<nil>a\uFFFD")
	ownMemory(t, c)
}

// ownMemory: the memory of a small command is not that of the daemon, and of a large one it is known.
func ownMemory(t *testing.T, c *talk) {
	t.Helper()
	const small, large = 16 << 20, 200_000_000
	for _, command := range []string{"true", "true; touch f"} {
		r := c.call("small "+command, map[string]any{"command": command})
		if of, _ := r.GetStructured().AsMap()["max_rss_bytes"].(float64); of > small || r.GetUsage().GetPeakMemoryBytes() > small {
			t.Errorf("%s takes %.0f bytes, or %d", command, of, r.GetUsage().GetPeakMemoryBytes())
		}
	}
	r := c.call("large", map[string]any{"command": fmt.Sprintf(`printf -v x "%%%ds" .; touch f`, large)})
	if of, _ := r.GetStructured().AsMap()["max_rss_bytes"].(float64); of < large || float64(r.GetUsage().GetPeakMemoryBytes()) != of {
		t.Errorf("it takes %.0f bytes, or %d", of, r.GetUsage().GetPeakMemoryBytes())
	}
}

// call runs a command with what else its input has. Questions get a yes.
func (c *talk) call(id string, input map[string]any) *tooldv1.ToolResult {
	c.t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		c.t.Fatal(err)
	}
	c.use(id, "Bash", string(text))
	return c.finish(id, yes)
}
