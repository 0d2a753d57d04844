package daemon

// TCP beside the Unix socket: what it takes to listen there, and how a connection shows who is behind it. It does not
// know what is served.

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

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A TCP is where and how a daemon listens beside its socket, and for whom.
type TCP struct {
	Address string // HOST:PORT; port 0: any that is free
	// Tokens is the file of those who may connect, one "NAME TOKEN" a line. It is made with one fresh token if there is
	// none, and read again when it has changed.
	Tokens string
	// Cert and Key are PEM files. Both empty: no TLS, which is for loopback alone.
	Cert, Key string
	// ClientCA is a PEM file with the authorities whose certificates clients may show in the stead of a token. Empty:
	// certificates are not asked for.
	ClientCA string
}

// A door is an open TCP listener.
type door struct {
	*net.TCPListener
	host   string // as it was asked for
	tokens *tokenFile
	leaf   *x509.Certificate                // its own; nil: no TLS
	creds  credentials.TransportCredentials // nil: no TLS
	gate   *gate
}

// ListenTCP opens a listener for Daemon.Serve. Beyond loopback there is none without TLS; the error says what to do.
func ListenTCP(config TCP) (net.Listener, error) {
	host, _, err := net.SplitHostPort(config.Address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address to listen on: name HOST:PORT, as 127.0.0.1:7777", config.Address)
	}
	address, err := net.ResolveTCPAddr("tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %s cannot be listened on: %w", config.Address, err)
	}
	d := &door{host: host, gate: newGate()}
	if err := d.secure(config); err != nil {
		return nil, err
	}
	if d.creds == nil && !address.IP.IsLoopback() {
		return nil, fmt.Errorf("%s can be reached from other machines, and without TLS tokens could be read on the way: name a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1 and come in through `ssh -L`", config.Address)
	}
	if d.tokens, err = openTokens(config.Tokens, d.gate.expel); err != nil {
		return nil, err
	}
	if len(d.tokens.known) == 0 && config.ClientCA == "" {
		return nil, fmt.Errorf("the token file %s holds no token, so nobody could connect: add a line NAME TOKEN, or remove the file and a fresh one is made", config.Tokens)
	}
	if d.TCPListener, err = net.ListenTCP("tcp", address); err != nil {
		return nil, fmt.Errorf("the address %s cannot be listened on: %w", config.Address, err)
	}
	return d, nil
}

// secure takes the certificates, if there are any.
func (d *door) secure(config TCP) error {
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

// described tells clients where the daemon listens.
func described(listeners []net.Listener) (wire []*tooldv1.Listener) {
	for _, listener := range listeners {
		switch l := listener.(type) {
		case *door:
			wire = append(wire, &tooldv1.Listener{Address: "tcp://" + l.Addr().String(), Tls: l.creds != nil})
		default:
			wire = append(wire, &tooldv1.Listener{Address: "unix:" + clean(l.Addr().String())})
		}
	}
	return wire
}

// Accept takes the next connection, which has a while to show who is behind it.
func (d *door) Accept() (net.Conn, error) {
	conn, err := d.AcceptTCP()
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: conn, door: d, from: vicinityOf(conn.RemoteAddr()), shown: map[token]struct{}{}}
	d.gate.enter(v)
	return v, nil
}

// vicinityOf is what counts as one address: of IPv6 the part that one customer gets.
func vicinityOf(address net.Addr) netip.Prefix {
	bits := 32
	at := addrPortOf(address).Addr()
	if at.Is6() {
		bits = 64
	}
	network, _ := at.Prefix(bits) // the zero one for what has no address
	return network
}

func addrPortOf(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return plain(tcp.AddrPort())
	}
	return netip.AddrPort{}
}

// plain is the address as IPv4 where it is one, without a zone.
func plain(at netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// A visitor is a connection over TCP.
type visitor struct {
	net.Conn
	door     *door
	from     netip.Prefix
	patience *time.Timer
	shown    map[token]struct{} // that came in its requests; guarded by the gate

	looking sync.Once
	refused error // because of the process at the other end
}

// Close ends the connection.
func (v *visitor) Close() error {
	v.door.gate.leave(v)
	return v.Conn.Close()
}

// A visit is what is known of a visitor after the handshake.
type visit struct {
	credentials.CommonAuthInfo
	*visitor
	certificate string // the common name; empty: none was shown
}

// AuthType names the way in which a visitor is known.
func (visit) AuthType() string { return "tcp" }

// greet does the handshake.
func (v *visitor) greet() (net.Conn, credentials.AuthInfo, error) {
	now := visit{visitor: v, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if v.door.creds == nil {
		return v, now, nil
	}
	conn, info, err := v.door.creds.ServerHandshake(v)
	if err != nil {
		return nil, nil, err
	}
	now.SecurityLevel = credentials.PrivacyAndIntegrity
	if shown := info.(credentials.TLSInfo).State.PeerCertificates; len(shown) > 0 { // which TLS has verified
		if now.certificate, err = nameIn(shown[0]); err != nil {
			return nil, nil, err
		}
	}
	return conn, now, nil
}

// nameIn gives whom a certificate is for.
func nameIn(shown *x509.Certificate) (string, error) {
	name := shown.Subject.CommonName
	if name == "" || len(name) > maxClient || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", errors.New("the client's certificate has no common name that could name a principal")
	}
	return name, nil
}

// identify tells who sent a request. A certificate tells more than a token, so beside one the other does not count.
func (v visit) identify(header metadata.MD) (principal, error) {
	if err := v.checkAim(header); err != nil {
		return "", err
	}
	who := principal("certificate:" + v.certificate)
	var shown token
	if v.certificate == "" {
		var err error
		if shown, err = v.bearer(header); err != nil {
			return "", err
		}
		who = principal("token:" + shown.name)
	}
	v.looking.Do(func() { v.refused = v.checkOtherEnd() })
	if v.refused != nil {
		return "", v.refused
	}
	return who, v.door.gate.welcome(v.visitor, who, shown)
}

// checkAim refuses what a web page has a browser send: it names a host that is not this one, or says where it is from.
func (v visit) checkAim(header metadata.MD) error {
	if len(header.Get("origin")) > 0 {
		return refuse(codes.PermissionDenied, "browser_origin", "The request comes from a web page, which this daemon does not serve.")
	}
	for _, aim := range header.Get(":authority") {
		if !v.door.is(aim, addrPortOf(v.LocalAddr()).Addr()) {
			return refuse(codes.PermissionDenied, "wrong_authority", "The request is for the host %q, which this daemon is not. Use the address that it listens on, or a name in its certificate.", short(aim))
		}
	}
	return nil
}

// is says whether the authority of a request means this daemon, which was reached at the address at.
func (d *door) is(authority string, at netip.Addr) bool {
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

// bearer gives the token that came with a request.
func (v visit) bearer(header metadata.MD) (found token, err error) {
	sent := header.Get("authorization")
	if len(sent) == 0 {
		return found, refuse(codes.Unauthenticated, "no_token", "The request has no token. Send one of the daemon's token file as the metadata \"authorization: Bearer TOKEN\".")
	}
	scheme, secret, _ := strings.Cut(sent[0], " ")
	if len(sent) > 1 || !strings.EqualFold(scheme, "bearer") {
		return found, refuse(codes.Unauthenticated, "no_token", "The metadata authorization is not one \"Bearer TOKEN\".")
	}
	found, known, err := v.door.tokens.find(secret)
	if err != nil {
		refused := refuse(codes.Unauthenticated, "tokens_unusable", "The daemon's token file cannot be used as it is now. The daemon's log says why.")
		refused.cause = err
		return found, refused
	}
	if !known {
		return found, refuse(codes.Unauthenticated, "wrong_token", "The token is none of the daemon's token file.")
	}
	return found, nil
}

// checkOtherEnd refuses a process that a call has started. Where the process cannot be found, as on another machine, the
// token decides.
func (v visit) checkOtherEnd() error {
	found, err := otherEnd(addrPortOf(v.RemoteAddr()), addrPortOf(v.LocalAddr()))
	switch {
	case err != nil:
		refused := refuse(codes.Unauthenticated, "unknown_peer", "It cannot be told which process the connection comes from.")
		refused.cause = err
		return refused
	case found.gone:
		return refuse(codes.Unauthenticated, "unknown_peer", "The process that the connection came from is gone.")
	case found.child != 0:
		return ownChild(found.child)
	}
	return nil
}

// entrance takes a peer's identity at the handshake, in the way of the listener that it came through. What it is allowed
// is decided request by request, so that a stranger gets a status instead of a closed connection.
type entrance struct{}

func (entrance) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	switch conn := conn.(type) {
	case *net.UnixConn:
		return greetUser(conn)
	case *visitor:
		return conn.greet()
	}
	return nil, nil, fmt.Errorf("nobody is known on a connection of type %T", conn)
}

func (entrance) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for servers")
}

func (entrance) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "toold"}
}

func (e entrance) Clone() credentials.TransportCredentials { return e }

func (entrance) OverrideServerName(string) error { return nil }
