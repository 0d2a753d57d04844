package pglog_test

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/logtest"
	"github.com/toold/toold/cluster/log/pglog"
)

// programs is where Debian has PostgreSQL 15.
const programs = "/usr/lib/postgresql/15/bin"

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") == "1" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// server starts a PostgreSQL server in a temporary directory and returns how
// to connect to it.
func server(t *testing.T) string {
	if _, err := os.Stat(programs); err != nil {
		missing(t, "PostgreSQL 15 is not installed: apt-get install postgresql-15")
	}
	dir, err := os.MkdirTemp("", "pglog") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	attributes := &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if os.Getuid() == 0 { // which the server refuses to run as
		attributes.Credential = credential(t)
		if err := os.Chown(dir, int(attributes.Credential.Uid), int(attributes.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, attributes
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-A", "trust", "-U", "toold", "--no-instructions").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	// The port only names the socket: the server listens nowhere else.
	config := fmt.Sprintf("listen_addresses = ''\nport = 5432\nunix_socket_directories = '%s'\n", dir)
	if err := os.WriteFile(filepath.Join(data, "postgresql.auto.conf"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := command("pg_ctl", "-D", data, "-w", "-t", "60", "-l", filepath.Join(dir, "log"), "start").CombinedOutput(); err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Fatalf("pg_ctl start: %v\n%s%s", err, out, text)
	}
	t.Cleanup(func() {
		if out, err := command("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop").CombinedOutput(); err != nil {
			t.Errorf("pg_ctl stop: %v\n%s", err, bytes.TrimSpace(out))
		}
	})
	if _, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	return "postgres://toold@/postgres?host=" + url.QueryEscape(dir)
}

// credential returns that of Debian's user for the server, or of nobody.
func credential(t *testing.T) *syscall.Credential {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	missing(t, "PostgreSQL does not run as root, and there is no user postgres or nobody")
	return nil
}

func TestPostgres(t *testing.T) {
	url := server(t)
	logtest.Test(t, func(t testing.TB) log.Log {
		l, err := pglog.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	})
}
