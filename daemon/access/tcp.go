// TCP listeners, and how a client authenticates on a connection.

package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/tools/text/ellipsis"
)

// maxName is how many bytes of a name that a client sends are taken or shown.
const maxName = 256

// A TCP is the configuration of a TCP listener.
type TCP struct {
	Address string // HOST:PORT; port 0: any free port
	// Tokens is the path of the token file, one "NAME TOKEN" a line. ListenTCP makes it with one fresh token if it does not
	// exist. It is read again when it has changed.
	Tokens string
	// Cert and Key are PEM files. Both empty: no TLS, which is allowed on loopback only.
	Cert, Key string
	// ClientCA is a PEM file with the authorities whose certificates clients may show instead of a token. Empty:
	// certificates are not requested.
	ClientCA string
	// Passed is a descriptor of the listener that the program before this one has passed; 0: a new one is opened at the address.
	Passed int
}

// A TCPListener accepts connections for Daemon.Serve. Clients on it authenticate with a token or a certificate.
type TCPListener struct {
	*net.TCPListener
	host        string // as configured
	tokens      *tokenFile
	leaf        *x509.Certificate                // its own; nil: no TLS
	creds       credentials.TransportCredentials // nil: no TLS
	connections *connections
}

// ListenTCP opens a listener for Daemon.Serve. Without TLS it listens on loopback only. Errors name the flag or file to change.
func ListenTCP(config TCP) (net.Listener, error) {
	host, _, err := net.SplitHostPort(config.Address)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address to listen on: name HOST:PORT, as 127.0.0.1:7777", config.Address)
	}
	address, err := net.ResolveTCPAddr("tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %s cannot be listened on: %w", config.Address, err)
	}
	d := &TCPListener{host: host, connections: newConnections()}
	if err := d.secure(config); err != nil {
		return nil, err
	}
	if d.creds == nil && !address.IP.IsLoopback() {
		return nil, fmt.Errorf("%s can be reached from other machines, and without TLS tokens could be read on the way: name a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1 and come in through `ssh -L`", config.Address)
	}
	if d.tokens, err = openTokens(config.Tokens, "Who may connect to toold over TCP", d.connections.evict); err != nil {
		return nil, err
	}
	if len(d.tokens.known) == 0 && config.ClientCA == "" {
		return nil, fmt.Errorf("the token file %s holds no token, so no client could connect: add a line NAME TOKEN, or remove the file and a fresh one is made", config.Tokens)
	}
	if d.TCPListener, err = config.listen(address); err != nil {
		return nil, fmt.Errorf("the address %s cannot be listened on: %w", config.Address, err)
	}
	return d, nil
}

// listen opens the socket, or takes over the one that was passed.
func (config TCP) listen(address *net.TCPAddr) (*net.TCPListener, error) {
	if config.Passed == 0 {
		return net.ListenTCP("tcp", address)
	}
	file := os.NewFile(uintptr(config.Passed), "tcp")
	defer file.Close() // the listener has a descriptor of its own
	inherited, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, is := inherited.(*net.TCPListener)
	if !is {
		return nil, errors.Join(errors.New("the socket that was passed is not one of TCP"), inherited.Close())
	}
	return listener, nil
}

// secure loads the certificates, if any are configured.
func (d *TCPListener) secure(config TCP) error {
	switch {
	case config.Cert == "" && config.Key == "" && config.ClientCA == "":
		return nil
	case config.Cert == "" && config.Key == "":
		return errors.New("client certificates need TLS: name the daemon's own certificate with --tls-cert and --tls-key")
	case config.Cert == "" || config.Key == "":
		return errors.New("TLS takes a certificate and its key: name both, with --tls-cert and --tls-key")
	}
	if info, err := os.Stat(config.Key); err == nil && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("the key %s can be used by every user (mode %04o); run `chmod 600 %s`", config.Key, info.Mode().Perm(), config.Key)
	}
	pair, err := tls.LoadX509KeyPair(config.Cert, config.Key)
	if err != nil {
		return fmt.Errorf("the certificate %s with the key %s cannot be used: %w", config.Cert, config.Key, err)
	}
	if d.leaf = pair.Leaf; time.Now().After(d.leaf.NotAfter) {
		return fmt.Errorf("the certificate %s has expired on %s: renew it", config.Cert, d.leaf.NotAfter.Format(time.DateOnly))
	}
	settings := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if config.ClientCA != "" {
		text, err := os.ReadFile(config.ClientCA)
		if err != nil {
			return fmt.Errorf("the authorities of clients cannot be read: %w", err)
		}
		settings.ClientCAs, settings.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if !settings.ClientCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("the file %s holds no certificate: --client-ca names the authorities of clients in PEM", config.ClientCA)
		}
	}
	d.creds = credentials.NewTLS(settings)
	return nil
}

// TLS reports whether connections are encrypted.
func (d *TCPListener) TLS() bool { return d.creds != nil }

// Accept waits for the next connection. A client that does not authenticate within authTime is disconnected.
func (d *TCPListener) Accept() (net.Conn, error) {
	conn, err := d.AcceptTCP()
	if err != nil {
		return nil, err
	}
	v := &tcpConn{Conn: conn, listener: d, from: networkOf(conn.RemoteAddr())}
	d.connections.add(v)
	return v, nil
}

// networkOf returns what counts as one address: all of an IPv4 address, the first 64 bits of an IPv6 address.
func networkOf(address net.Addr) netip.Prefix {
	bits := 32
	at := addrPortOf(address).Addr()
	if at.Is6() {
		bits = 64
	}
	network, _ := at.Prefix(bits) // zero for a connection without an address
	return network
}

func addrPortOf(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return plain(tcp.AddrPort())
	}
	return netip.AddrPort{}
}

// plain returns the address without a zone, and as IPv4 if it is a mapped one.
func plain(at netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// A tcpConn is a connection over TCP.
type tcpConn struct {
	net.Conn
	listener *TCPListener
	from     netip.Prefix
	timer    *time.Timer
	shown    []token // tokens sent on it; guarded by listener.connections.mu

	looking sync.Once
	refused error // why the process at the other end is refused; set by looking
}

// Close ends the connection.
func (v *tcpConn) Close() error {
	v.listener.connections.remove(v)
	return v.Conn.Close()
}

// A tcpInfo is the auth info of a TCP connection after the handshake.
type tcpInfo struct {
	credentials.CommonAuthInfo
	*tcpConn
	certificate string // common name of the client's certificate; empty: none was shown
}

// AuthType returns "tcp".
func (tcpInfo) AuthType() string { return "tcp" }

// handshake does the TLS handshake, if the listener has a certificate.
func (v *tcpConn) handshake() (net.Conn, credentials.AuthInfo, error) {
	now := tcpInfo{tcpConn: v, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if v.listener.creds == nil {
		return v, now, nil
	}
	conn, info, err := v.listener.creds.ServerHandshake(v)
	if err != nil {
		return nil, nil, err
	}
	now.SecurityLevel = credentials.PrivacyAndIntegrity
	if shown := info.(credentials.TLSInfo).State.PeerCertificates; len(shown) > 0 { // verified by the handshake
		if now.certificate, err = nameIn(shown[0]); err != nil {
			return nil, nil, err
		}
	}
	return conn, now, nil
}

// nameIn returns the common name of a certificate.
func nameIn(shown *x509.Certificate) (string, error) {
	name := shown.Subject.CommonName
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", errors.New("the client's certificate has no common name that could name a principal")
	}
	return name, nil
}

// identify returns the principal that sent a request. With a certificate the token is ignored.
func (v tcpInfo) identify(header metadata.MD) (Principal, error) {
	if err := v.checkAim(header); err != nil {
		return "", err
	}
	who := Principal("certificate:" + v.certificate)
	var shown token
	if v.certificate == "" {
		var err error
		if shown, err = v.bearer(header); err != nil {
			return "", err
		}
		who = Principal("token:" + shown.name)
	}
	v.looking.Do(func() { v.refused = v.checkOtherEnd() })
	if v.refused != nil {
		return "", v.refused
	}
	return who, v.listener.connections.admit(v.tcpConn, who, shown)
}

// checkAim refuses requests that a web page made a browser send: they have an Origin, or an authority that is not this host.
func (v tcpInfo) checkAim(header metadata.MD) error {
	if len(header.Get("origin")) > 0 {
		return apierror.New(codes.PermissionDenied, "browser_origin", "The request comes from a web page, which this daemon does not serve.")
	}
	for _, aim := range header.Get(":authority") {
		if !v.listener.is(aim, addrPortOf(v.LocalAddr()).Addr()) {
			return apierror.New(codes.PermissionDenied, "wrong_authority", "The request is for the host %q, which this daemon is not. Use the address that it listens on, or a name in its certificate.", ellipsis.Bytes(strings.ToValidUTF8(aim, "\uFFFD"), maxName))
		}
	}
	return nil
}

// is reports whether the authority of a request names this daemon, which was reached at the address at.
func (d *TCPListener) is(authority string, at netip.Addr) bool {
	host, _, err := net.SplitHostPort(authority)
	if err != nil {
		host = authority
	}
	host = strings.Trim(host, "[]")
	if d.leaf != nil && d.leaf.VerifyHostname(host) == nil {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host != "" && strings.EqualFold(host, d.host) || strings.EqualFold(host, "localhost") && at.IsLoopback()
	}
	address = address.Unmap().WithZone("")
	return address == at || address.IsLoopback() && at.IsLoopback()
}

// bearer returns the token of a request.
func (v tcpInfo) bearer(header metadata.MD) (found token, err error) {
	sent := header.Get("authorization")
	if len(sent) == 0 {
		return found, apierror.New(codes.Unauthenticated, "no_token", "The request has no token. Send one of the daemon's token file as the metadata \"authorization: Bearer TOKEN\".")
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	if len(sent) > 1 || !strings.EqualFold(scheme, "bearer") {
		return found, apierror.New(codes.Unauthenticated, "no_token", "The metadata authorization is not one \"Bearer TOKEN\".")
	}
	found, err = v.listener.tokens.find(secret)
	if err != nil {
		refused := apierror.New(codes.Unauthenticated, "tokens_unusable", "The daemon's token file cannot be used as it is now. The daemon's log says why.")
		refused.Cause = err
		return found, refused
	}
	if found.name == "" {
		return found, apierror.New(codes.Unauthenticated, "wrong_token", "The token is not in the daemon's token file.")
	}
	return found, nil
}

// checkOtherEnd refuses a process that a call of this daemon started. If the process cannot be found, for instance because it
// runs on another machine, it refuses nothing.
func (v *tcpConn) checkOtherEnd() error {
	child, gone, err := otherEnd(addrPortOf(v.RemoteAddr()), addrPortOf(v.LocalAddr()))
	switch {
	case err != nil:
		refused := apierror.New(codes.Unauthenticated, "unknown_peer", "The process that the connection comes from is unknown.")
		refused.Cause = err
		return refused
	case gone:
		return apierror.New(codes.Unauthenticated, "unknown_peer", "The process that the connection came from is gone.")
	case child != 0:
		return ownChild(child)
	}
	return nil
}

// Credentials returns the server credentials for listeners of Listen and ListenTCP. They take the identity of a client at the
// handshake, and refuse no one: Identify decides for each request, so that a refused client gets a status and not a closed
// connection.
// What is unfinished of the messages on their connections is bounded by arriving.
func Credentials(arriving *Arriving) credentials.TransportCredentials { return transport{arriving} }

// transport does the handshake of the listener that a connection came through.
type transport struct{ arriving *Arriving }

func (t transport) ServerHandshake(conn net.Conn) (safe net.Conn, info credentials.AuthInfo, err error) {
	switch conn := conn.(type) {
	case *net.UnixConn:
		safe, info, err = handshakeSocket(conn)
	case *tcpConn:
		safe, info, err = conn.handshake()
	default:
		return nil, nil, fmt.Errorf("no principal is known for a connection of type %T", conn)
	}
	if err != nil {
		return nil, nil, err
	}
	return t.arriving.count(safe), info, nil
}

func (transport) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for servers")
}

func (transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "toold"}
}

func (t transport) Clone() credentials.TransportCredentials { return t }

func (transport) OverrideServerName(string) error { return nil }

// Bounded returns credentials that do the handshake of creds. What is unfinished of the messages on its connections is
// bounded by arriving.
func Bounded(creds credentials.TransportCredentials, arriving *Arriving) credentials.TransportCredentials {
	return bounded{creds, arriving}
}

type bounded struct {
	credentials.TransportCredentials
	arriving *Arriving
}

func (b bounded) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	safe, info, err := b.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	return b.arriving.count(safe), info, nil
}

func (b bounded) Clone() credentials.TransportCredentials {
	return bounded{b.TransportCredentials.Clone(), b.arriving}
}
