// TCP beside the socket, from the command line of serve. The daemon package decides what is refused, and who may connect.

package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/daemon/access"
)

// listening is the flags of serve that speak of TCP.
type listening struct{ access.TCP }

func (f *listening) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Address, "listen", "", "serve TCP at HOST:PORT beside the socket, for those with a token or a certificate")
	flags.StringVar(&f.Tokens, "token-file", "", "who may connect over TCP, one NAME TOKEN a line; made if there is none (default: tokens in the state directory)")
	flags.StringVar(&f.Cert, "tls-cert", "", "the daemon's certificate (PEM); needed beyond loopback")
	flags.StringVar(&f.Key, "tls-key", "", "the certificate's key (PEM)")
	flags.StringVar(&f.ClientCA, "client-ca", "", "authorities (PEM) whose certificates clients may show instead of a token")
}

// open opens the listener, or takes over the one that was passed; nil: none was asked for.
func (f *listening) open(state string, passed []int) (net.Listener, error) {
	if f.Address == "" {
		if f.Tokens+f.Cert+f.Key+f.ClientCA != "" {
			return nil, cli.Misused("--token-file, --tls-cert, --tls-key and --client-ca are about TCP: name an address with --listen HOST:PORT")
		}
		return nil, nil
	}
	if f.Tokens == "" {
		f.Tokens = filepath.Join(state, "tokens")
	}
	if len(passed) > 0 {
		f.Passed = passed[0]
	}
	return access.ListenTCP(f.TCP)
}

// said is how people and --address name where a TCP listener is.
func (f *listening) said(l net.Listener) string {
	return fmt.Sprintf("tcp://%s (tokens: %s)", l.Addr(), f.Tokens)
}
