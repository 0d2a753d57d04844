package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/daemon/access"
)

// Environment variables that count where the flag of the same meaning is not given.
const (
	addressVariable   = "TOOLD_ADDRESS"
	tokenFileVariable = "TOOLD_TOKEN_FILE"
)

// A remote is a daemon over TCP, as the flags have it.
type remote struct {
	Address   string // as it was given; HOST:PORT once understood. Empty: the Unix socket
	tokenFile string
	ca        string
	cert, key string
	handshake atomic.Pointer[error] // what has kept the connection from being encrypted; nil: nothing
	dialed    atomic.Pointer[error] // what has kept it from being made; nil: nothing
}

// Add adds the flags.
func (r *remote) Add(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&r.Address, "address", "", "a daemon elsewhere, tcp://HOST:PORT (default: $"+addressVariable+", else the socket)")
	flags.StringVar(&r.tokenFile, "token-file", "", "the file with the token for --address (default: $"+tokenFileVariable+")")
	flags.StringVar(&r.ca, "ca", "", "authorities (PEM) that the daemon's certificate comes from (default: the system's)")
	flags.StringVar(&r.cert, "cert", "", "a client certificate (PEM) instead of a token")
	flags.StringVar(&r.key, "key", "", "the client certificate's key (PEM)")
}

// here names the commands that are about this machine, whatever address is set.
var here = map[string]bool{"serve": true, "demo": true, "version": true, "settings": true, "trust": true, "help": true, "completion": true, "man": true, "doctor": true}

// Resolve checks what was given for the command cmd. socket: --socket was given too.
func (r *remote) Resolve(cmd *cobra.Command, socket bool) error {
	named, more := r.Address != "", r.tokenFile+r.ca+r.cert+r.key != ""
	switch {
	case here[cmd.Name()] && (named || more):
		return cli.Misused("toold %s is about this machine: leave --address out, and what goes with it", cmd.Name())
	case named && socket:
		return cli.Misused("--address and --socket name two daemons: give one of them")
	case here[cmd.Name()], socket && !named:
		r.Address = ""
	case !named:
		r.Address = os.Getenv(addressVariable)
	}
	if r.Address == "" {
		if more {
			return cli.Misused("--token-file, --ca, --cert and --key are about TCP: name a daemon with --address tcp://HOST:PORT")
		}
		return nil
	}
	to, err := url.Parse(r.Address)
	if err != nil || to.Hostname() == "" || to.Port() == "" || r.Address != "tcp://"+to.Host {
		return cli.Misused("%q is not the address of a daemon: write tcp://HOST:PORT, or name a socket with --socket", r.Address)
	}
	if cmd.Name() == "start" || cmd.Name() == "stop" {
		return cli.Misused("toold %s is for a daemon on this machine, and the address is %s: leave it out, or do it there", cmd.Name(), r.Address)
	}
	r.Address = to.Host
	if r.tokenFile == "" {
		r.tokenFile = os.Getenv(tokenFileVariable)
	}
	return nil
}

// dial returns a link that shows a token or a certificate with each request.
func (r *remote) dial() (*toold.Conn, error) {
	options := []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := r.open(ctx, address)
			if r.dialed.Store(nil); err != nil {
				r.dialed.Store(&err)
			}
			return conn, err
		}),
		grpc.WithChainUnaryInterceptor(r.unary), grpc.WithChainStreamInterceptor(r.stream),
	}
	transport, err := r.transport()
	if err != nil {
		return nil, err
	}
	options = append(options, grpc.WithTransportCredentials(transport))
	switch {
	case r.tokenFile != "":
		secret, err := access.ReadToken(r.tokenFile)
		if err != nil {
			return nil, cli.Misused("%v", err)
		}
		options = append(options, grpc.WithPerRPCCredentials(bearer(secret)))
	case r.cert == "":
		return nil, cli.Misused("a daemon over TCP wants a token: name its file with --token-file or %s", tokenFileVariable)
	}
	conn, err := toold.Connect("passthrough:///"+r.Address, options...)
	if err != nil {
		return nil, cli.NoDaemon("the connection to tcp://%s cannot be set up: %v", r.Address, err)
	}
	return conn, nil
}

// unary marks the errors of calls as those of another machine's daemon.
func (r *remote) unary(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return cli.AtRemote(invoke(ctx, method, request, response, conn, options...), "tcp://"+r.Address)
}

// stream is unary for streams.
func (r *remote) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, cli.AtRemote(err, "tcp://"+r.Address)
	}
	return remoteStream{s, "tcp://" + r.Address}, nil
}

type remoteStream struct {
	grpc.ClientStream
	where string
}

// RecvMsg returns io.EOF as it is: it is the end, not an error.
func (s remoteStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return cli.AtRemote(err, s.where)
}

// plain reports whether nothing is encrypted: the daemon is on loopback, and nothing was said of certificates.
func (r *remote) plain() bool {
	host, _, _ := net.SplitHostPort(r.Address) // empty, which is not loopback, where it is not an address
	at, err := netip.ParseAddr(host)
	return r.ca == "" && r.cert == "" && (strings.EqualFold(host, "localhost") || err == nil && at.IsLoopback())
}

func (r *remote) transport() (credentials.TransportCredentials, error) {
	if r.plain() {
		return insecure.NewCredentials(), nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS13}
	if r.ca != "" {
		text, err := os.ReadFile(r.ca)
		if err != nil {
			return nil, cli.Misused("the authorities cannot be read: %v", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(text) {
			return nil, cli.Misused("the file %s holds no certificate: --ca names authorities in PEM", r.ca)
		}
	}
	if r.cert != "" || r.key != "" {
		pair, err := tls.LoadX509KeyPair(r.cert, r.key)
		if err != nil {
			return nil, cli.Misused("the certificate of --cert and --key cannot be used: %v", err)
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return handshake{credentials.NewTLS(settings), &r.handshake}, nil
}

// A handshake is TLS that keeps the error with which setting it up has failed: the connection reports only that it broke off.
type handshake struct {
	credentials.TransportCredentials
	failed *atomic.Pointer[error]
}

func (h handshake) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		h.failed.Store(&err)
	}
	return conn, info, err
}

func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone(), h.failed}
}

// open connects. What is called localhost must be it, since a token goes there in the clear.
func (r *remote) open(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil || !r.plain() {
		return conn, err
	}
	if at, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		_ = conn.Close()
		return nil, fmt.Errorf("%s leads to another machine (%s), and nothing would be encrypted: name the authorities of its certificate with --ca", address, conn.RemoteAddr())
	}
	return conn, nil
}

// bearer is the token, as gRPC sends it.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity returns false: open decides, since loopback needs no TLS.
func (bearer) RequireTransportSecurity() bool { return false }
