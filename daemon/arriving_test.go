// Messages that a client does not finish, through a real socket.

package daemon_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestUnfinishedMessages: 60 streams with most of a large message each end with their connection at a limit, and another
// client goes on.
func TestUnfinishedMessages(t *testing.T) {
	const largest = 1 << 20
	h := prepare(t)
	h.limit(`"message_bytes": 1048576`)
	h.start()
	c := h.join("s", free())
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", h.socket)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	ended := make(chan error, 60)
	for range cap(ended) {
		body, message := io.Pipe()
		defer message.Close()
		go func() {
			_, _ = message.Write(binary.BigEndian.AppendUint32([]byte{0}, largest))
			_, _ = message.Write(make([]byte, largest-1))
		}()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://toold/toold.v1.ToolService/Execute", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
		go func() {
			response, err := transport.RoundTrip(request)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
			ended <- err
		}()
	}
	if err := <-ended; err == nil {
		t.Error("a stream with an unfinished message ended in order")
	}
	c.use("t", "TodoWrite", `{"todos":[]}`)
	c.until("t OK")
}
