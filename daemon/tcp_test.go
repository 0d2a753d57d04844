// Clients over TCP: who is let in, who is not, and what each is told.

package daemon_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Tokens of the tests.
const (
	tokenA  = "AAAA-token-of-alice-AAAA"
	tokenB  = "BBBB-token-of-robert-BBBB"
	strange = "CCCC-token-of-nobody-CCCC"
)

// tokens writes a token file.
func (h *house) tokens(text string) (path string) {
	h.t.Helper()
	path = filepath.Join(filepath.Dir(h.state), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

const both = "# who may come\nalice " + tokenA + "\n\n robert\t" + tokenB + "\n"

// open starts a daemon that listens on TCP too, and gives the address. What is not said of TCP is loopback with both
// tokens.
func (h *house) open(tcp access.TCP, change ...func(*daemon.Config)) (address string) {
	h.t.Helper()
	if tcp.Address == "" {
		tcp.Address = "127.0.0.1:0"
	}
	if tcp.Tokens == "" {
		tcp.Tokens = h.tokens(both)
	}
	config := h.config()
	for _, f := range change {
		f(&config)
	}
	d, err := daemon.New(config)
	if err != nil {
		h.t.Fatal(err)
	}
	socket, err := access.Listen(h.socket)
	if err != nil {
		h.t.Fatal(err)
	}
	listener, err := access.ListenTCP(tcp)
	if err != nil {
		h.t.Fatal(err)
	}
	h.d, h.served = d, make(chan error, 1)
	go func() { h.served <- d.Serve(socket, listener) }()
	h.connect()
	return listener.Addr().String()
}

// bearer is a token as a client sends it.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// as is the house as a client over TCP sees it.
func (h *house) as(address, token string, more ...grpc.DialOption) *house {
	h.t.Helper()
	options := append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, more...)
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	return &house{t: h.t, root: h.root, conn: conn}
}

func (h *house) info(ctx context.Context) (*tooldv1.GetInfoResponse, error) {
	return h.daemon().GetInfo(ctx, &tooldv1.GetInfoRequest{})
}

// TestTokens: a right token is somebody, anything else is refused on every service, and the socket needs none.
func TestTokens(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	alice := h.as(address, tokenA)
	info, err := alice.info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want(t, info.GetPrincipal(), "token:alice")
	var listeners []string
	for _, l := range info.GetListeners() {
		listeners = append(listeners, fmt.Sprint(l.GetAddress(), " ", l.GetTls()))
	}
	want(t, listeners, []string{"unix:" + h.socket + " false", "tcp://" + address + " false"})
	alice.lives(t)
	if info.GetStateDir() != "" {
		t.Errorf("a client over TCP is told the state directory %s", info.GetStateDir())
	}
	if info, err = h.info(t.Context()); err != nil || info.GetPrincipal() != fmt.Sprint("uid:", os.Getuid()) || info.GetStateDir() != h.state {
		t.Errorf("%v, %v over the socket", info.GetPrincipal(), err)
	}
	for sent, reason := range map[string]string{
		"": "no_token", "Bearer ": "wrong_token", "Bearer " + strange: "wrong_token", "Bearer " + tokenA[1:]: "wrong_token",
		"Bearer " + tokenA + " ": "wrong_token", "Basic " + tokenA: "no_token", tokenA: "no_token", "bearer " + tokenA: "",
	} {
		ctx := t.Context()
		if sent != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", sent)
		}
		_, err := h.as(address, "").info(ctx)
		if reasonOf(err) != reason {
			t.Errorf("%q: %v, want %s", sent, err, reason)
		}
	}
	twice := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strange)
	_, err = alice.info(twice)
	refused(t, err, codes.Unauthenticated, "no_token")
	nobody := h.as(address, strange)
	for _, method := range methods() {
		refused(t, nobody.throw(t.Context(), method), codes.Unauthenticated, "wrong_token")
	}
	_, err = healthpb.NewHealthClient(nobody.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	refused(t, err, codes.Unauthenticated, "wrong_token")
	_, err = alice.daemon().Shutdown(t.Context(), &tooldv1.ShutdownRequest{Now: true})
	refused(t, err, codes.PermissionDenied, "not_local")
}

// TestWebPages: what a browser would send for a page of somebody else's is refused, token or not.
func TestWebPages(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	_, port, _ := net.SplitHostPort(address)
	for authority, reason := range map[string]string{
		"localhost:" + port: "", "[::1]:" + port: "", "127.0.0.1": "", "LOCALHOST:1": "", // a tunnel has another port
		"evil.example:" + port: "wrong_authority", "localhost.evil.example": "wrong_authority", "10.0.0.1:" + port: "wrong_authority",
	} {
		_, err := h.as(address, tokenA, grpc.WithAuthority(authority)).info(t.Context())
		if reasonOf(err) != reason {
			t.Errorf("%s: %v, want %s", authority, err, reason)
		}
	}
	_, err := h.as(address, tokenA).info(metadata.AppendToOutgoingContext(t.Context(), "origin", "http://localhost:"+port))
	refused(t, err, codes.PermissionDenied, "browser_origin")
}

// TestTokensChange: the file counts as it is now, also for connections that are open; one that is broken lets nobody in.
func TestTokensChange(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	alice, robert := h.as(address, tokenA), h.as(address, tokenB)
	c := alice.join("s", free())
	if _, err := robert.info(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.tokens("robert " + tokenB + "\nclara " + strange + "\n")
	if info, err := h.as(address, strange).info(t.Context()); err != nil || info.GetPrincipal() != "token:clara" {
		t.Errorf("the new token: %v, %v", info.GetPrincipal(), err)
	}
	if err := c.closed(); err == nil {
		t.Error("the stream of a token that was taken out ended in order; want it cut")
	}
	_, err := alice.info(t.Context())
	refused(t, err, codes.Unauthenticated, "wrong_token")
	if _, err := robert.info(t.Context()); err != nil {
		t.Error(err)
	}
	path := h.tokens("robert " + tokenB + "\nnonsense\n")
	_, err = h.as(address, tokenB).info(t.Context())
	refused(t, err, codes.Unauthenticated, "tokens_unusable")
	h.tokens(both)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err = h.as(address, tokenB).info(t.Context())
	refused(t, err, codes.Unauthenticated, "tokens_unusable")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = h.as(address, tokenB).info(t.Context())
	refused(t, err, codes.Unauthenticated, "tokens_unusable")
	h.lives(t)
}

// TestNoCredentialsInLogs: neither a right token nor a wrong one is written anywhere, at whatever level.
func TestNoCredentialsInLogs(t *testing.T) {
	h := prepare(t)
	core, logged := observer.New(zapcore.DebugLevel)
	address := h.open(access.TCP{}, func(c *daemon.Config) { c.Log = zap.New(core) })
	alice, nobody := h.as(address, tokenA), h.as(address, strange)
	alice.lives(t)
	for range 50 {
		_, err := nobody.info(t.Context())
		refused(t, err, codes.Unauthenticated, "wrong_token")
	}
	_, err := h.as(address, "").info(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Basic "+strange))
	refused(t, err, codes.Unauthenticated, "no_token")
	h.tokens("alice " + tokenA + " " + strange)
	_, err = h.as(address, tokenA).info(t.Context())
	refused(t, err, codes.Unauthenticated, "tokens_unusable")
	h.stop()
	refusals := 0
	for _, entry := range logged.All() {
		text := fmt.Sprint(entry.Message, entry.ContextMap())
		if strings.Contains(text, "wrong_token") {
			refusals++
		}
		for _, secret := range []string{tokenA, tokenB, strange} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in the log: %s", secret, text)
			}
		}
	}
	if refusals == 0 || refusals > 10 || logged.FilterMessageSnippet("tokens_unusable").Len() == 0 || logged.FilterLevelExact(zapcore.DebugLevel).Len() == 0 {
		t.Errorf("%d lines, %d about wrong tokens; want some and not all of them", logged.Len(), refusals)
	}
}

// TestFloodOfStrangers: connections on which nobody says who he is cost nobody else anything, and do not stay.
func TestFloodOfStrangers(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	alice := h.as(address, tokenA)
	c := alice.join("s", free())
	var flood []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		flood = append(flood, conn)
	}
	for _, conn := range flood[:200] { // the oldest had to go
		if n, err := readAll(conn); err == nil {
			t.Fatalf("a stranger's connection is open, after %d bytes", n)
		}
	}
	c.use("a", "Glob", `{"pattern":"*"}`)
	c.until("a OK")
	h.as(address, tokenB).lives(t)
	h.lives(t)
}

// readAll reads until the daemon hangs up.
func readAll(conn net.Conn) (n int, err error) {
	buffer := make([]byte, 1024)
	for err == nil {
		var more int
		more, err = conn.Read(buffer)
		n += more
	}
	return n, err
}

// TestGuests: one principal has only so many connections, and others have theirs.
func TestGuests(t *testing.T) {
	h := prepare(t)
	address := h.open(access.TCP{})
	for n := range 129 {
		_, err := h.as(address, tokenA).info(t.Context())
		if n < 128 && err != nil {
			t.Fatal(err)
		}
		if n == 128 {
			refused(t, err, codes.ResourceExhausted, "too_many_connections")
		}
	}
	if _, err := h.as(address, tokenB).info(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOwnChildOverTCP: what a call has started cannot use the daemon over TCP either, not even with a token; another
// process of the user can. A sandbox would keep it away before.
func TestOwnChildOverTCP(t *testing.T) {
	h := prepare(t)
	if err := os.WriteFile(h.settings, []byte(`{"sandbox": {"enabled": false}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	address := h.open(access.TCP{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	call := callSocket + "=tcp:" + address + " " + callBearer + "=" + tokenA + " " + self
	c := h.join("s", free())
	c.use("child", "Bash", `{"command":"`+call+`"}`)
	c.use("orphan", "Bash", `{"command":"(setsid env `+call+` >said &) ; until [ -s said ]; do :; done; cat said"}`)
	c.endTurn()
	results := c.results()
	for _, id := range []string{"child", "orphan"} {
		if said := results[id].GetContent()[0].GetText(); !strings.HasPrefix(said, "own_child\n") {
			t.Errorf("%s was told %q", id, said)
		}
	}
	h.as(address, tokenA).lives(t)
}

// An authority makes certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.issue("ca", func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return a
}

// issue writes NAME.pem and NAME.key for 127.0.0.1 and gives the pair.
func (a *authority) issue(name string, change ...func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"toold.example"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, f := range change {
		f(template)
	}
	if a.cert == nil {
		a.cert, a.key = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	bare, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", bare)
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// trusting is a client that trusts the authority and shows those certificates.
func (a *authority) trusting(shown ...tls.Certificate) grpc.DialOption {
	a.t.Helper()
	text, err := os.ReadFile(a.file("ca.pem"))
	if err != nil {
		a.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: shown}))
}

// TestCertificates: over TLS a token or a certificate of the right authority is somebody. Beyond loopback too.
func TestCertificates(t *testing.T) {
	h, a := prepare(t), newAuthority(t)
	a.issue("daemon")
	bound := h.open(access.TCP{Address: "0.0.0.0:0", Cert: a.file("daemon.pem"), Key: a.file("daemon.key"), ClientCA: a.file("ca.pem")})
	_, port, _ := net.SplitHostPort(bound)
	address := "127.0.0.1:" + port
	other := newAuthority(t)
	nameless := a.issue("nameless", func(c *x509.Certificate) { c.Subject = pkix.Name{} })
	server := a.issue("server", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	late := a.issue("late", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	for name, test := range map[string]struct {
		token string
		dial  grpc.DialOption
		want  string // the principal, or a reason, or of the connection alone: "hung up"
	}{
		"certificate":           {"", a.trusting(a.issue("alice")), "certificate:alice"},
		"token":                 {tokenA, a.trusting(), "token:alice"},
		"both":                  {tokenA, a.trusting(a.issue("robert")), "certificate:robert"},
		"neither":               {"", a.trusting(), "no_token"},
		"wrong token":           {strange, a.trusting(), "wrong_token"},
		"another authority's":   {"", a.trusting(other.issue("alice")), "hung up"},
		"without a name":        {"", a.trusting(nameless), "hung up"},
		"not for clients":       {"", a.trusting(server), "hung up"},
		"expired":               {"", a.trusting(late), "hung up"},
		"the daemon is unknown": {tokenA, other.trusting(), "hung up"},
		"no TLS":                {tokenA, grpc.WithTransportCredentials(insecure.NewCredentials()), "hung up"},
	} {
		info, err := h.as(address, test.token, test.dial).info(t.Context())
		got := info.GetPrincipal() + reasonOf(err)
		if err != nil && got == "" {
			got = "hung up"
		}
		if got != test.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, test.want)
		}
	}
	info, err := h.as(address, tokenA, a.trusting(), grpc.WithAuthority("toold.example")).info(t.Context())
	if err != nil || !info.GetListeners()[1].GetTls() {
		t.Errorf("%v, %v; want it said that there is TLS", info.GetListeners(), err)
	}
}

// TestRefusedStarts: what a daemon does not listen with, and what it says.
func TestRefusedStarts(t *testing.T) {
	h, a := prepare(t), newAuthority(t)
	good := h.tokens(both)
	a.issue("daemon")
	a.issue("other")
	a.issue("late", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := os.ReadFile(a.file("daemon.key"))
	if err != nil {
		t.Fatal(err)
	}
	pem, pair := a.file("daemon.pem"), a.file("daemon.key")
	for want, tcp := range map[string]access.TCP{
		"is not an address to listen on: name HOST:PORT":         {Address: "7777"},
		"cannot be listened on: lookup":                          {Address: "127.0.0.1:no-such-port"},
		"127.0.0.1:1x cannot be listened on":                     {Address: "127.0.0.1:1x"},
		"address already in use":                                 {Address: taken.Addr().String()},
		":0 can be reached from other machines":                  {Address: ":0"},
		"0.0.0.0:0 can be reached from other machines":           {Address: "0.0.0.0:0"},
		"[::]:0 can be reached from other machines":              {Address: "[::]:0"},
		"or listen on 127.0.0.1 and come in through `ssh -L`":    {Address: "192.0.2.1:0"},
		"name both, with --tls-cert and --tls-key":               {Address: "0.0.0.0:0", Cert: pem},
		"TLS takes a certificate and its key":                    {Address: "127.0.0.1:0", Key: pair},
		"client certificates need TLS":                           {Address: "127.0.0.1:0", ClientCA: a.file("ca.pem")},
		"private key does not match public key":                  {Cert: pem, Key: a.file("other.key")},
		"no-such.pem: no such file":                              {Cert: a.file("no-such.pem"), Key: pair},
		"can be used by every user (mode 0604); run `chmod 600":  {Cert: pem, Key: file("k", string(key), 0o604)},
		"has expired on":                                         {Cert: a.file("late.pem"), Key: a.file("late.key")},
		"holds no certificate: --client-ca":                      {Cert: pem, Key: pair, ClientCA: pair},
		"the authorities of clients cannot be read":              {Cert: pem, Key: pair, ClientCA: a.file("none")},
		"can be read by other users (mode 0640); run `chmod 600": {Tokens: file("t", both, 0o640)},
		"can be read by other users (mode 0604)":                 {Tokens: file("t", both, 0o604)},
		"(mode 0622)":                                            {Tokens: file("t", both, 0o622)},
		"is not a regular file":                                  {Tokens: t.TempDir()},
		"holds no token, so no client could connect":             {Tokens: file("t", "# none\n", 0o600)},
		"line 2: it has 1 words; write NAME TOKEN":               {Tokens: file("t", "\n"+strange, 0o600)},
		"line 1: it has 3 words":                                 {Tokens: file("t", "a "+strange+" x", 0o600)},
		"line 1: a name is 1 to 64 letters":                      {Tokens: file("t", "a:b "+strange, 0o600)},
		"the token has 5 characters; 20 to 512 are taken":        {Tokens: file("t", "a short", 0o600)},
		"a character that cannot be sent":                        {Tokens: file("t", "a "+strings.Repeat("ä", 20), 0o600)},
		"line 2: the token stands in an earlier line too":        {Tokens: file("t", "a "+strange+"\nb "+strange, 0o600)},
		"has 1001 tokens, and at most 1000 are taken":            {Tokens: file("t", many(1001), 0o600)},
		"has more than 1048576 bytes":                            {Tokens: file("t", strings.Repeat("#\n", 1<<20), 0o600)},
	} {
		if tcp.Address == "" {
			tcp.Address = "127.0.0.1:0"
		}
		if tcp.Tokens == "" {
			tcp.Tokens = good
		}
		listener, err := access.ListenTCP(tcp)
		if err == nil {
			listener.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), strange) {
			t.Errorf("%+v: %v, want %q", tcp, err, want)
		}
	}
}

// many is the lines of so many tokens.
func many(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "name token-of-number-%08d\n", i)
	}
	return lines.String()
}
