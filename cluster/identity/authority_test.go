package identity

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestInitKeeps: what cannot be kept is named with what to do, and the others are made.
func TestInitKeeps(t *testing.T) {
	dir := t.TempDir()
	g := Subject{Role: Gateway, Name: "g", Hosts: []string{"g.example", "10.0.0.1", "g.example"}}
	if _, err := Init(dir, g, Subject{Role: Node, Name: "half"}); err != nil {
		t.Fatal(err)
	}
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	remove("node-half.pem")
	g.Hosts = []string{"10.0.0.1", "g.example"}
	if _, err := Init(dir, g); err != nil {
		t.Errorf("the same hosts in another order: %v", err)
	}
	g.Hosts = []string{"other.example"}
	issued, err := Init(dir, g, Subject{Role: Node, Name: "half"}, Subject{Role: Node, Name: "new"})
	if err == nil || !strings.Contains(err.Error(), `other hosts, ["g.example" "g.example" "10.0.0.1"]`) || !strings.Contains(err.Error(), "node-half-key.pem has no certificate") {
		t.Errorf("the error is %v", err)
	}
	if len(issued) != 2 || issued[1].File != "node-new.pem" || !issued[1].Made {
		t.Errorf("%v", issued)
	}
	remove("gateway-g.pem")
	remove("gateway-g-key.pem")
	if _, err := Init(dir, g); err != nil { // as docs/cluster.md renews one
		t.Error(err)
	}
	remove("ca-key.pem")
	if _, err := Init(dir, Subject{Role: Node, Name: "later"}); err == nil || !strings.Contains(err.Error(), "ca-key.pem") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ca-key.pem")); err == nil {
		t.Error("a key was made for an authority that exists")
	}
}

// TestInitOfAnExpired: an authority that has expired makes no certificates: no program would accept them.
func TestInitOfAnExpired(t *testing.T) {
	dir := t.TempDir()
	template := newTemplate("toold cluster", -time.Hour)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	if err := sign(template, nil, filepath.Join(dir, authorityFile), filepath.Join(dir, authorityKeyFile)); err != nil {
		t.Fatal(err)
	}
	issued, err := Init(dir, Subject{Role: Node, Name: "a"})
	if err == nil || !strings.Contains(err.Error(), "the authority has expired") || len(issued) != 1 {
		t.Errorf("%v, %v", issued, err)
	}
}
