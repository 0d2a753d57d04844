package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streams are recordings in testdata/streams, and what is read of each: the tool uses with the number of the value by
// which each is complete, and the end.
var streams = map[string][]string{
	"anthropic.sse": {
		`10: toolu_1 Read {"file_path": "/w/a.txt"}`, "17: toolu_2 TaskList ", `19: toolu_3 Glob {"pattern": "*.go"}`, "Anthropic msg_01",
	},
	"anthropic-interleaved.jsonl": {`7: toolu_2 Glob {"pattern":"*"}`, `9: toolu_1 Read {"file_path":"/w/a.txt"}`, "Anthropic msg_02"},
	"anthropic-max-tokens.jsonl":  {`4: toolu_1 Read {"file_path":"/w/a.txt"}`, "Anthropic msg_03 cut off [TaskList]"},
	"anthropic-broken.sse": {
		`10: toolu_1 Read {"file_path": "/w/a.txt"}`, "17: toolu_2 TaskList ", "Anthropic msg_01 broken cut off [Glob]",
	},
	"anthropic-error.sse":    {`10: toolu_1 Read {"file_path": "/w/a.txt"}`, "Anthropic msg_01 failed overloaded_error: Overloaded"},
	"chat.sse":               {`4: call_1 Read {"file_path":"/w/a.txt"}`, "6: call_2 TaskList ", "Chat chatcmpl-1"},
	"chat-interleaved.jsonl": {`3: call_2 Glob {"pattern":"*.{txt,md}"}`, `3: call_1 Read {"file_path":"/w/a.txt"}`, "Chat chatcmpl-2"},
	"chat-length.sse":        {"1: call_1 Read {}", "Chat chatcmpl-3 cut off [TaskList]"},
	"chat-one-index.jsonl":   {`1: call_1 Read {"a":1}`, `3: call_2 Glob {"b":2}`, "Chat chatcmpl-4"},
	"chat-error.sse": {
		`1: call_1 Read {"file_path":"/w/a.txt"}`, "Chat chatcmpl-5 failed server_error: The server had an error while processing your request.",
	},
	"chat-broken.sse":            {`3: call_1 Read {"file_path":"/w/a.txt"}`, "Chat chatcmpl-6 broken cut off [Glob]"},
	"responses-pings.sse":        {`11: call_2 Glob {"pattern":"*"}`, `13: call_1 Read {"file_path":"/w/a.txt"}`, "Responses resp_3"},
	"responses.sse":              {`10: call_2 Glob {"pattern":"*"}`, `12: call_1 Read {"file_path":"/w/a.txt"}`, "Responses resp_1"},
	"responses-broken.sse":       {`10: call_2 Glob {"pattern":"*"}`, "Responses resp_1 broken cut off [Read]"},
	"responses-incomplete.sse":   {`10: call_2 Glob {"pattern":"*"}`, "Responses resp_1 cut off [Read]"},
	"responses-failed.sse":       {`10: call_2 Glob {"pattern":"*"}`, "Responses resp_1 failed server_error: The model failed."},
	"responses-error.sse":        {`10: call_2 Glob {"pattern":"*"}`, "Responses resp_1 failed rate_limit_exceeded: Slow down."},
	"responses-at-the-end.jsonl": {"2: call_1 Read {}", `2: call_2 sql "select 1"`, "Responses resp_2"},
}

func TestStreams(t *testing.T) {
	recorded, err := filepath.Glob("testdata/streams/*")
	if err != nil || len(recorded) != len(streams) {
		t.Fatalf("%d recordings, and %d expectations (%v)", len(recorded), len(streams), err)
	}
	for name, want := range streams {
		text, err := os.ReadFile(filepath.Join("testdata/streams", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, playback(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// playback feeds a text byte by byte, and tells what is read of it and when.
func playback(text []byte) (lines []string) {
	r := &Reader{}
	tell := func(uses []Use) {
		for _, line := range told(uses) {
			lines = append(lines, fmt.Sprintf("%d: %s", r.values, line))
		}
	}
	end := ""
	ending := Ending{}
	var err error
	for i := 0; i < len(text) && err == nil; i++ {
		var uses []Use
		uses, err = r.Feed(text[i : i+1])
		tell(uses)
	}
	if err == nil {
		var uses []Use
		uses, ending, err = r.End()
		tell(uses)
	}
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		end = " failed " + failure.Kind + ": " + failure.Message
	case err != nil:
		end = " refused: " + err.Error()
	}
	if ending.Broken {
		end += " broken"
	}
	if len(ending.CutOff) > 0 {
		end += fmt.Sprintf(" cut off %v", ending.CutOff)
	}
	format := map[Format]string{Anthropic: "Anthropic", Chat: "Chat", Responses: "Responses"}[r.Format()]
	return append(lines, format+" "+r.ID()+end)
}

// An input that is larger than any that is taken stays one, and is cut down to it.
func TestLimits(t *testing.T) {
	m := &Message{}
	add := func(value string) []Use {
		t.Helper()
		uses, err := m.Add([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		return uses
	}
	add(`{"type":"message_start","message":{"id":"m"}}`)
	add(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"Write"}}`)
	piece := fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`, strings.Repeat("x", 1<<20))
	for range 12 {
		add(piece)
	}
	add(`{"type":"content_block_stop","index":0}`)
	uses := add(`{"type":"message_stop"}`)
	if len(uses) != 1 || len(uses[0].Input) != maxInput {
		t.Errorf("%d uses; the first has %d bytes of input, want %d", len(uses), len(uses[0].Input), maxInput)
	}

	m = &Message{}
	if _, err := m.Add([]byte(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"Write"}}`)); err != nil {
		t.Fatal(err)
	}
	m.events.held = maxHeld - 1<<19 // as if other blocks held it
	if _, err := m.Add([]byte(piece)); err == nil {
		t.Errorf("%d bytes are held", m.events.held)
	}

	r := &Reader{form: values, text: bytes.Repeat([]byte("x"), maxHeld), passed: maxHeld, nested: nesting{depth: 1, inString: true}}
	if _, err := r.Feed([]byte("x")); err == nil {
		t.Errorf("%d bytes are held of one value", len(r.text))
	}
}

func seeds(f *testing.F) {
	f.Helper()
	for _, c := range messageCases {
		f.Add([]byte(c.text), uint8(3))
	}
	files, err := filepath.Glob("testdata/streams/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(7))
	}
}

// FuzzReader holds what follows from any text: how it is cut into pieces makes no difference; each use has an id of its
// own or none; a format is known if and only if there are uses or events; what was cut off is not among the uses.
func FuzzReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		r, uses, ending, err := read(text)
		parts := &Reader{}
		var again []Use
		var partsErr error
		for piece := range slices.Chunk(text, int(size)+1) {
			var some []Use
			some, partsErr = parts.Feed(piece)
			if again = append(again, some...); partsErr != nil {
				break
			}
		}
		endingAgain := Ending{}
		if partsErr == nil {
			var some []Use
			some, endingAgain, partsErr = parts.End()
			again = append(again, some...)
		}
		if diff := cmp.Diff(uses, again); diff != "" || fmt.Sprint(err, ending) != fmt.Sprint(partsErr, endingAgain) {
			t.Fatalf("in pieces of %d it reads otherwise (%v, %+v; %v, %+v):\n%s", int(size)+1, err, ending, partsErr, endingAgain, diff)
		}
		if r.Format() == Silent && len(uses) > 0 {
			t.Fatalf("%d uses in no format", len(uses))
		}
		ids := map[string]bool{}
		for _, u := range uses {
			if u.ID != "" && ids[u.ID] {
				t.Fatalf("the id %q comes twice", u.ID)
			}
			ids[u.ID] = true
		}
	})
}

// FuzzNesting holds that the end of an object is found where encoding/json finds it.
func FuzzNesting(f *testing.F) {
	for _, seed := range []string{`{"a":"}\"{"} x`, `[{"a":[]}][`, `{"a":"\\"}`, `{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 || text[0] != '{' && text[0] != '[' {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return
		}
		n := nesting{}
		for i, c := range text {
			if n.next(c); n.over {
				if i+1 != len(value) {
					t.Fatalf("%q ends at %d, and encoding/json says %d", text, i+1, len(value))
				}
				return
			}
		}
		t.Fatalf("%q does not end", text)
	})
}
