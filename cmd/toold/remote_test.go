package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

// certify writes ca.pem, and NAME.pem and NAME.key from it for each name.
func certify(t *testing.T, dir string, names ...string) {
	t.Helper()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	var root *ecdsa.PrivateKey
	for n, name := range append([]string{"ca"}, names...) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		cert := authority
		if n == 0 {
			root = key
		} else {
			cert = &x509.Certificate{
				SerialNumber: big.NewInt(int64(n + 1)), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
			}
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, authority, &key.PublicKey, root)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		put(t, filepath.Join(dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bare})))
	}
}

// TestRemoteOverTLS: the command line reaches a daemon with a token or a certificate, and trusts no other.
func TestRemoteOverTLS(t *testing.T) {
	environ, ws := home(t)
	dir := filepath.Dir(ws)
	certify(t, dir, "daemon", "alice")
	certify(t, filepath.Join(dir, "other"))
	serve := self(t, t.Context(), environ, dir, "serve", "--root", ws, "--listen", "127.0.0.1:0", "--tls-cert", "daemon.pem", "--tls-key", "daemon.key",
		"--client-ca", "ca.pem", "--token-file", "tokens")
	address := addressSaid(t, serve)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--ca ca.pem --cert alice.pem --key alice.key", 0, "certificate:alice"},
		{"--ca ca.pem --token-file tokens", 0, "token:default"},
		{"--ca ca.pem", cli.ExitUsage, "wants a token"},
		{"--ca other/ca.pem --token-file tokens", cli.ExitNoDaemon, "certificate"},
		{"--token-file tokens", cli.ExitNoDaemon, ""}, // in the clear
		{"--ca ca.pem --cert alice.pem", cli.ExitUsage, "--cert and --key"},
		{"--ca none.pem --token-file tokens", cli.ExitUsage, "cannot be read"},
	} {
		cmd := self(t, t.Context(), environ, dir, append([]string{"status", "--address", address}, strings.Fields(test.args)...)...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != test.code || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", test.args, cmd.ProcessState.ExitCode(), test.code, test.want, out)
		}
	}
}

// addressSaid starts a daemon and returns the TCP address that it prints. It ends with the test's context, and its
// watcher before it: one that was killed would leave that running for a moment.
func addressSaid(t *testing.T, serve *exec.Cmd) string {
	t.Helper()
	serve.Cancel = func() error { return serve.Process.Signal(syscall.SIGTERM) }
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Wait() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if address := regexp.MustCompile(`tcp://\S+`).FindString(line); address != "" {
			return address
		}
		if err != nil {
			t.Fatalf("the daemon says %q (%v)", line, err)
		}
	}
}
