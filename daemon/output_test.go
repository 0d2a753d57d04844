// What a client reads of a call's output beside the stream.

package daemon_test

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// read returns what ReadOutput sends, the offset of its first byte, and whether the call has ended.
func (h *house) read(request *tooldv1.ReadOutputRequest) (text string, from uint64, ended bool) {
	h.t.Helper()
	stream, err := h.tools().ReadOutput(h.t.Context(), request)
	if err != nil {
		h.t.Fatal(err)
	}
	for first := true; ; first = false {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return text, from, ended
		}
		if err != nil {
			h.t.Fatal(err)
		}
		if first {
			from = response.GetOffset()
		}
		text, ended = text+string(response.GetData()), response.GetEnd()
	}
}

// TestEndOfAnOutput: the end of a long output is read without the rest of it, while it grows and afterwards, and of one channel.
func TestEndOfAnOutput(t *testing.T) {
	h := serve(t)
	c := h.join("s", free())
	c.use("a", "Bash", `{"command":"seq 100000; while [ ! -e go ]; do sleep 0.05; done; echo more; echo wrong >&2"}`)
	c.endTurn()
	c.until("a started")
	request := &tooldv1.ReadOutputRequest{SessionId: "s", ToolUseId: "a", Last: 20}
	const size, last = 588895, "\n99998\n99999\n100000\n" // of what seq prints
	for text := ""; text != last; {                       // until all of it has come
		var from uint64
		var ended bool
		if text, from, ended = h.read(request); ended || text == last && from != size-20 {
			t.Fatalf("%q from %d, of a call that runs: ended %t", text, from, ended)
		}
	}
	h.file("go", "")
	c.results()
	request.Channel, request.Offset = tooldv1.Channel_CHANNEL_STDOUT, size // that is later than 20 bytes before the end
	if text, from, ended := h.read(request); text != "more\n" || from != size || !ended {
		t.Errorf("%q from %d, ended %t", text, from, ended)
	}
	request.Channel, request.Offset, request.Last = tooldv1.Channel_CHANNEL_STDERR, 0, 3
	if text, from, _ := h.read(request); text != "ng\n" || from != 3 {
		t.Errorf("%q of the errors from %d", text, from)
	}
	request.Last = 1 << 63
	stream, err := h.tools().ReadOutput(t.Context(), request)
	if err == nil {
		_, err = stream.Recv()
	}
	refused(t, err, codes.InvalidArgument, "invalid_offset")
}
