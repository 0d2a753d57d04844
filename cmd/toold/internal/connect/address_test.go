package connect

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestPlainOnLoopbackAlone: where a token would go in the clear, and which addresses are none.
func TestPlainOnLoopbackAlone(t *testing.T) {
	for address, want := range map[string]string{
		"tcp://127.0.0.1:1": "plain", "tcp://[::1]:1": "plain", "tcp://localhost:1": "plain", "tcp://127.8.9.1:1": "plain",
		"tcp://10.0.0.1:1": "TLS", "tcp://build.example:1": "TLS", "tcp://localhost.evil.example:1": "TLS", "tcp://0.0.0.0:1": "TLS",
		"tcp://build.example": "refused", "http://127.0.0.1:1": "refused", "tcp://u:p@127.0.0.1:1": "refused",
		"tcp://127.0.0.1:1/": "refused", "tcp://127.0.0.1:1?x": "refused", "tcp://:1": "refused", "127.0.0.1:1": "refused", "\x00": "refused",
	} {
		r := remote{Address: address}
		got := "refused"
		if err := r.Resolve(&cobra.Command{Use: "status"}, false); err == nil {
			got = map[bool]string{true: "plain", false: "TLS"}[r.plain()]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
		r = remote{Address: address, ca: "ca.pem"}
		if err := r.Resolve(&cobra.Command{Use: "status"}, false); err == nil && r.plain() {
			t.Errorf("%s with --ca is plain", address)
		}
	}
}
