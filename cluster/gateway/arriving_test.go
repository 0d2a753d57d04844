// Messages that a client does not finish, through a real connection.

package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestUnfinishedMessages: streams with most of a large message each end with their connection at a limit, and another client
// goes on.
func TestUnfinishedMessages(t *testing.T) {
	c := newCluster(t, "anna")
	_, address := c.gateway(c.config("g1"))
	other := c.conn("anna", address)
	authority, err := os.ReadFile(filepath.Join(c.dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{RootCAs: roots}}
	transport.Protocols.SetHTTP2(true)
	defer transport.CloseIdleConnections()
	ended := make(chan error, 20) // a connection has room for 8 of the largest messages
	most := make([]byte, maxMessage-1)
	for range cap(ended) {
		body, message := io.Pipe()
		defer message.Close()
		go func() {
			_, _ = message.Write(binary.BigEndian.AppendUint32([]byte{0}, maxMessage))
			_, _ = message.Write(most)
		}()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+tooldv1.ToolService_Execute_FullMethodName, body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "Authorization": {"Bearer " + c.tokens["anna"]}}
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
	if _, err := other.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{}); err != nil {
		t.Errorf("another client is not served: %v", err)
	}
}
