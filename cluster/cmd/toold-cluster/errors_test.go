//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/natstest"
	"github.com/toold/toold/cluster/quota"
)

// TestWrongFlags: what could not work is refused at once, with what to write.
func TestWrongFlags(t *testing.T) {
	usable := func() nodeFlags { return nodeFlags{listen: "127.0.0.1:7400", allowRoot: true} }
	for want, change := range map[string]func(*nodeFlags){
		"":                                  func(*nodeFlags) {},
		"0.0.0.0:7400 names no address":     func(f *nodeFlags) { f.listen = "0.0.0.0:7400" },
		":7400 names no address":            func(f *nodeFlags) { f.listen = ":7400" },
		"with --advertise HOST:PORT":        func(f *nodeFlags) { f.listen = "[::]:7400" },
		`--listen "7400" is not HOST:PORT`:  func(f *nodeFlags) { f.listen = "7400" },
		`--advertise "a" is not HOST:PORT`:  func(f *nodeFlags) { f.listen, f.advertise = "0.0.0.0:7400", "a" },
		"--advertise a:0 has no port":       func(f *nodeFlags) { f.listen, f.advertise = "0.0.0.0:7400", "a:0" },
		"as http://HOST:8222":               func(f *nodeFlags) { f.monitors = []string{"http://127.0.0.1:8222", "127.0.0.1:8222"} },
		`--nats-monitor "nats://127.0.0.1"`: func(f *nodeFlags) { f.monitors = []string{"nats://127.0.0.1"} },
		"are not negative":                  func(f *nodeFlags) { f.quota = quota.Amounts{Sessions: -3} },
	} {
		f := usable()
		change(&f)
		if err := f.check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// certificates makes those of a node, an administrator and a NATS server.
func certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, err := identity.Init(dir, identity.Subject{Role: identity.NATS, Name: "q", Hosts: []string{"127.0.0.1"}},
		identity.Subject{Role: identity.Node, Name: "a"}, identity.Subject{Role: identity.Admin, Name: "me"})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// secured starts a NATS server that accepts the certificates of one authority.
func secured(t *testing.T, certs string) (url string) {
	t.Helper()
	id, err := identity.Load(certs, identity.NATS, "q")
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		TLSConfig: id.ServerTLS(identity.Node, identity.Gateway, identity.Admin), TLSVerify: true, TLSTimeout: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s.ClientURL()
}

// TestNATSIsRefused: what waits for NATS reports why it cannot be reached, and not only that time is over.
func TestNATSIsRefused(t *testing.T) {
	own, other := certificates(t), certificates(t)
	address := strings.TrimPrefix(strings.TrimPrefix(secured(t, own), "tls://"), "nats://")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := closed.Addr().String()
	_ = closed.Close()
	for name, test := range map[string]struct{ certs, url, want string }{
		"another authority": {other, "tls://" + address, "unknown authority"},
		"without TLS":       {own, "nats://" + address, "tls"},
		"no server":         {own, "nats://" + gone, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := identity.Load(test.certs, identity.Node, "a")
			if err != nil {
				t.Fatal(err)
			}
			c := &common{nats: test.url}
			conn, _, err := c.connect(id)
			if err == nil {
				defer conn.Close()
				ctx, end := context.WithCancel(t.Context())
				defer end()
				err = c.patiently(ctx, zap.NewNop(), "see the nodes", func(context.Context) error {
					if c.link.why() != nil {
						end()
					}
					return context.DeadlineExceeded
				})
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.url) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

// TestExpiry: certificates are warned of in time, and the metrics have the days that are left.
func TestExpiry(t *testing.T) {
	id, err := identity.Load(certificates(t), identity.Node, "a")
	if err != nil {
		t.Fatal(err)
	}
	users, err := id.UserTLS("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	all := expiryOf(id, users)
	for name, want := range map[string]float64{"own": 365, "authority": 3650} {
		if days := time.Until(all[name]).Hours() / 24; len(all) != 2 || days < want-1 || days > want {
			t.Errorf("%s expires in %v days, want %v", name, days, want)
		}
	}
	now := all[ownName]
	for before, want := range map[time.Duration]string{31 * day: "", 29*day + time.Hour: "warn own 29", -time.Second: "error own 0", -25 * time.Hour: "error own -1"} {
		core, seen := observer.New(zap.InfoLevel)
		all.warn(zap.New(core), now.Add(-before))
		got := ""
		for _, entry := range seen.All() {
			got = fmt.Sprint(entry.Level, " ", entry.ContextMap()["certificate"], " ", entry.ContextMap()["days_left"])
		}
		if got != want {
			t.Errorf("%v before: %q, want %q", before, got, want)
		}
	}
	registry := prometheus.NewRegistry()
	defer all.watch(zap.NewNop(), registry)()
	found, err := registry.Gather()
	if err != nil || len(found) != 1 || found[0].GetName() != "toold_cluster_certificate_days_left" || len(found[0].GetMetric()) != 2 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestRegistersLast: a node that cannot serve does not register, and gateways are not sent to it.
func TestRegistersLast(t *testing.T) {
	conn, js := natstest.Connect(t, natstest.Start(t))
	certs := certificates(t)
	program := filepath.Join(t.TempDir(), "toold")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	f := nodeFlags{common: common{certs: certs, nats: conn.ConnectedUrl(), replicas: 1, logFormat: "json", objects: "nats"}, name: "a", listen: "127.0.0.1:0", allowRoot: true, toold: program}
	f.data = filepath.Join(t.TempDir(), strings.Repeat("x", 61))
	if err := f.run(); err == nil || !strings.Contains(err.Error(), "60 bytes") {
		t.Fatalf("the error is %v", err)
	}
	view, err := members.Open(t.Context(), members.Config{NATS: conn, JetStream: js})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	if all := view.All(); len(all) > 0 {
		t.Errorf("%v are registered", all)
	}
}

// TestOneNodeOfAName: a node does not take the place of another one of its name that serves, and one that lives is not forgotten.
func TestOneNodeOfAName(t *testing.T) {
	conn, js := natstest.Connect(t, natstest.Start(t))
	var answer error
	config := members.Config{NATS: conn, JetStream: js, Ping: func(_ context.Context, n members.Node) error {
		if n.Address != "127.0.0.1:1" {
			return fmt.Errorf("%s was asked", n.Address)
		}
		return answer
	}}
	if err := members.Register(t.Context(), config, "a", "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	unasked := config
	unasked.Ping = nil // only what is tested asks
	view, err := members.Open(t.Context(), unasked)
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	f := nodeFlags{name: "a"}
	register := func(address string) error { return f.register(t.Context(), zap.NewNop(), config, view, address) }
	if err := register("127.0.0.1:2"); err == nil || !strings.Contains(err.Error(), `another node named "a" serves at 127.0.0.1:1`) {
		t.Errorf("the error is %v", err)
	}
	for _, answer = range []error{nil, members.ErrNotServing} {
		if err := forgetNode(t.Context(), config, view, "a"); err == nil || !strings.Contains(err.Error(), `the node "a" lives`) {
			t.Errorf("the error is %v", err)
		}
	}
	answer = errors.New("connection refused")
	if err := register("127.0.0.1:2"); err != nil {
		t.Errorf("the other one is gone: %v", err)
	}
	if err := forgetNode(t.Context(), config, view, "a"); err != nil {
		t.Error(err)
	}
}
