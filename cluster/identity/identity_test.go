package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

const execute = "/toold.v1.ToolService/Execute"

// cluster makes the certificates of the subjects and returns them.
func cluster(t *testing.T, subjects ...Subject) []*Identity {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	if _, err := Init(dir, subjects...); err != nil {
		t.Fatal(err)
	}
	all := make([]*Identity, len(subjects))
	for n, s := range subjects {
		var err error
		if all[n], err = Load(dir, s.Role, s.Name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// connect makes the handshake between a server and a client, and returns what
// each of them has found.
func connect(t *testing.T, server, client *tls.Config) (atServer tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	one, two := tls.Server(a, server), tls.Client(b, client)
	go func() {
		err := one.HandshakeContext(t.Context())
		if err == nil {
			_, err = one.Write([]byte("x")) // a client is refused after its own handshake
		}
		a.Close()
		done <- err
	}()
	clientErr = two.HandshakeContext(t.Context())
	if clientErr == nil {
		_, clientErr = two.Read(make([]byte, 1))
	}
	b.Close()
	return one.ConnectionState(), <-done, clientErr
}

func TestWhoMayConnect(t *testing.T) {
	all := cluster(t, Subject{Role: Node, Name: "n1"}, Subject{Role: Node, Name: "n2"}, Subject{Role: Gateway, Name: "g"},
		Subject{Role: Admin, Name: "anna"}, Subject{Role: NATS, Name: "q", Hosts: []string{"localhost", "127.0.0.1"}})
	n1, n2, g, anna, nats := all[0], all[1], all[2], all[3], all[4]
	other := cluster(t, Subject{Role: Gateway, Name: "g"})[0]
	server := n1.ServerTLS(Gateway, Admin)
	local := func(config *tls.Config) *tls.Config { config.ServerName = "localhost"; return config }
	for name, c := range map[string]struct {
		server, client *tls.Config
		ok             bool
	}{
		"a gateway":                      {server, g.ClientTLS(Node, "n1"), true},
		"an administrator":               {server, anna.ClientTLS(Node, "n1"), true},
		"another node":                   {server, n2.ClientTLS(Node, "n1"), false},
		"a gateway of another cluster":   {server, other.ClientTLS(Node, "n1"), false},
		"without a certificate":          {server, &tls.Config{InsecureSkipVerify: true}, false},
		"a gateway that expects another": {server, g.ClientTLS(Node, "n2"), false},
		"a gateway that expects no node": {server, g.ClientTLS(Gateway, "n1"), false},
		"a node to NATS":                 {nats.ServerTLS(Node, Gateway, Admin), local(n1.NATSClientTLS()), true},
		"a node to a node for NATS":      {n2.ServerTLS(Node), local(n1.NATSClientTLS()), false},
	} {
		t.Run(name, func(t *testing.T) {
			state, serverErr, clientErr := connect(t, c.server, c.client)
			if ok := serverErr == nil && clientErr == nil; ok != c.ok {
				t.Fatalf("server: %v, client: %v; want success %v", serverErr, clientErr, c.ok)
			}
			if c.ok && len(state.VerifiedChains) == 0 {
				t.Error("the client's certificate was not verified")
			}
		})
	}
}

func TestInit(t *testing.T) {
	dir := t.TempDir()
	first := Subject{Role: Node, Name: "n1"}
	if _, err := Init(dir, first); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "node-n1.pem"))
	if err != nil {
		t.Fatal(err)
	}
	issued, err := Init(dir, first, Subject{Role: Node, Name: "n9"})
	if after, _ := os.ReadFile(filepath.Join(dir, "node-n1.pem")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a certificate was written over: %v", err)
	}
	for n, want := range []Issued{{File: "ca.pem"}, {File: "node-n1.pem"}, {File: "node-n9.pem", Made: true}} {
		if len(issued) != 3 || issued[n].File != want.File || issued[n].Made != want.Made || issued[n].Until.Before(time.Now()) {
			t.Errorf("%v; want %v", issued, want)
		}
	}
	if _, err := Init(dir, Subject{Role: Gateway, Name: "g"}); err != nil {
		t.Fatal(err)
	}
	g, err := Load(dir, Gateway, "g")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Load(dir, Node, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if _, serverErr, clientErr := connect(t, n.ServerTLS(Gateway), g.ClientTLS(Node, "n1")); serverErr != nil || clientErr != nil {
		t.Errorf("a certificate that was added later: %v, %v", serverErr, clientErr)
	}
	for _, key := range []string{"ca-key.pem", "node-n1-key.pem"} {
		if info, err := os.Stat(filepath.Join(dir, key)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", key, info, err)
		}
	}
	for _, wrong := range []Subject{{}, {Role: "king", Name: "n"}, {Role: Node, Name: "../n"}, {Role: Node, Name: ""}} {
		if _, err := Init(dir, wrong); err == nil {
			t.Errorf("%s was made", wrong)
		}
	}
	if err := os.Rename(filepath.Join(dir, "node-n1.pem"), filepath.Join(dir, "node-n2.pem")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "node-n1-key.pem"), filepath.Join(dir, "node-n2-key.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, Node, "n2"); err == nil {
		t.Error("a certificate of another node was loaded")
	}
}

// peerOf returns the peer that a server sees.
func peerOf(t *testing.T, of *Identity) (context.Context, Peer) {
	t.Helper()
	server := cluster(t, Subject{Role: Node, Name: "n1"})[0]
	server.roots = of.roots
	client := of.NATSClientTLS()
	client.InsecureSkipVerify = true // the server has no certificate of that authority
	state, serverErr, _ := connect(t, server.ServerTLS(of.Subject.Role), client)
	if serverErr != nil {
		t.Fatal(serverErr)
	}
	ctx := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
	peer, err := PeerOf(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, peer
}

func TestPrincipal(t *testing.T) {
	all := cluster(t, Subject{Role: Gateway, Name: "g1"}, Subject{Role: Gateway, Name: "g2"})
	_, peer := peerOf(t, all[0])
	if peer.Subject.Role != Gateway || peer.Subject.Name != "g1" {
		t.Errorf("the peer is %v", peer.Subject)
	}
	now := time.Now()
	sign := func(by *Identity, node, method string) []byte {
		signed, err := by.SignPrincipal("token:ci*. ", node, method, now)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	good := sign(all[0], "n1", execute)
	changed := bytes.Replace(good, []byte("token:ci"), []byte("token:me"), 1)
	for name, c := range map[string]struct {
		signed []byte
		at     time.Time
		want   error
	}{
		"good":                  {good, now, nil},
		"at its last second":    {good, now.Add(59 * time.Second), nil},
		"expired":               {good, now.Add(61 * time.Second), ErrExpired},
		"for another node":      {sign(all[0], "n2", execute), now, ErrOtherNode},
		"for another method":    {sign(all[0], "n1", "/toold.v1.ToolService/GetCall"), now, ErrOtherMethod},
		"by another gateway":    {sign(all[1], "n1", execute), now, ErrSignature},
		"with another name":     {changed, now, ErrSignature},
		"without a principal":   {nil, now, ErrMalformed},
		"cut off":               {good[:10], now, ErrMalformed},
		"of another format":     {append([]byte{2}, good[1:]...), now, ErrMalformed},
		"longer than any could": {append(good[:len(good):len(good)], make([]byte, maxSigned)...), now, ErrMalformed},
	} {
		who, err := peer.VerifyPrincipal(c.signed, "n1", execute, c.at)
		if !errors.Is(err, c.want) || (err == nil) != (who == "token:ci*. ") {
			t.Errorf("%s: %q, %v; want %v", name, who, err, c.want)
		}
	}
}

func TestIncoming(t *testing.T) {
	g := cluster(t, Subject{Role: Gateway, Name: "g1"})[0]
	ctx, _ := peerOf(t, g)
	header, err := g.Outgoing("token:ci", "w\x00 ü", "n1", execute, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	call, err := Incoming(metadata.NewIncomingContext(ctx, header), "n1", execute, time.Now())
	if err != nil || call.Principal != "token:ci" || call.Workspace != "w\x00 ü" || call.Peer.Subject.Name != "g1" {
		t.Errorf("%+v, %v", call, err)
	}
	node := cluster(t, Subject{Role: Node, Name: "n2"})[0]
	nodes, _ := peerOf(t, node)
	own, err := node.Outgoing("token:ci", "w", "n1", execute, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		header metadata.MD
	}{
		"from a node":           {nodes, own},
		"without metadata":      {ctx, metadata.MD{}},
		"with two principals":   {ctx, metadata.MD{PrincipalKey: {header[PrincipalKey][0], header[PrincipalKey][0]}}},
		"without a certificate": {t.Context(), header},
	} {
		_, err := Incoming(metadata.NewIncomingContext(c.ctx, c.header), "n1", execute, time.Now())
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzPrincipal(f *testing.F) {
	dir := f.TempDir()
	if _, err := Init(dir, Subject{Role: Gateway, Name: "g"}); err != nil {
		f.Fatal(err)
	}
	g, err := Load(dir, Gateway, "g")
	if err != nil {
		f.Fatal(err)
	}
	now := time.Unix(1<<31, 0)
	good, err := g.SignPrincipal("p", "n", "m", now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{1, 255, 255})
	f.Add([]byte(nil))
	peer := Peer{key: g.pair.Leaf.PublicKey}
	f.Fuzz(func(t *testing.T, signed []byte) {
		if _, err := peer.VerifyPrincipal(signed, "n", "m", now); err == nil && !bytes.HasSuffix(signed, good[bytes.IndexByte(good, '{'):]) {
			t.Errorf("%q was accepted", signed)
		}
	})
}

func TestUsers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write := func(text string, mode fs.FileMode) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	anna, annas := newToken(t, "anna@example.org")
	ben, bens := newToken(t, "ben")
	write("# users\n\n"+annas, 0o640)
	users, err := OpenUsers(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(authorization, want string) {
		t.Helper()
		header := metadata.MD{}
		if authorization != "" {
			header.Set("authorization", authorization)
		}
		who, err := users.Authenticate(t.Context(), header)
		if err != nil {
			if status.Code(err) != codes.Unauthenticated {
				t.Error(err)
			}
			who = status.Convert(err).Details()[0].(interface{ GetReason() string }).GetReason()
		}
		if who != want {
			t.Errorf("%q is %s, want %s", authorization, who, want)
		}
	}
	check("Bearer "+anna, "token:anna@example.org")
	check("bearer "+anna, "token:anna@example.org")
	check("Bearer "+ben, "wrong_token")
	check("Bearer ", "wrong_token")
	check("Basic "+anna, "no_token")
	check("", "no_token")
	write(bens, 0o640)
	check("Bearer "+ben, "token:ben")
	check("Bearer "+anna, "wrong_token")
	write(bens, 0o666)
	check("Bearer "+ben, "tokens_unusable")
	if _, err := OpenUsers(file, nil); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Error(err)
	}
	write(bens, 0o640)
	check("Bearer "+ben, "token:ben")
}

func TestUserTLS(t *testing.T) {
	g := cluster(t, Subject{Role: Gateway, Name: "g", Hosts: []string{"gate.example.org"}})[0]
	authority := t.TempDir() // as if users had an authority of their own
	if _, err := Init(authority, Subject{Role: Admin, Name: "anna"}); err != nil {
		t.Fatal(err)
	}
	anna, err := Load(authority, Admin, "anna")
	if err != nil {
		t.Fatal(err)
	}
	config, err := g.UserTLS("", "", filepath.Join(authority, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	users, err := OpenUsers("", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: g.roots, ServerName: "gate.example.org", Certificates: []tls.Certificate{anna.pair}}
	state, serverErr, clientErr := connect(t, config, client)
	if serverErr != nil || clientErr != nil {
		t.Fatal(serverErr, clientErr)
	}
	ctx := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: credentials.TLSInfo{State: state}})
	if who, err := users.Authenticate(ctx, nil); err != nil || who != "certificate:anna" {
		t.Errorf("%q, %v", who, err)
	}
	client.Certificates = []tls.Certificate{g.pair} // of the cluster's authority, so no user's
	if _, serverErr, _ = connect(t, config, client); serverErr == nil {
		t.Error("a certificate of the cluster was taken for a user's")
	}
}
