package conformance_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// own are the steps that the runner does itself.
var own = map[string]func(r *runner, args []string) string{
	"file": func(r *runner, args []string) string { r.write(args[0], args[1]); return "" },
	"read": func(r *runner, args []string) string { return r.home.read(args[0]) },
	"cut":  func(r *runner, args []string) string { return r.cut(args) },
	"hold": func(r *runner, _ []string) string { r.proxy.set(func() { r.proxy.held = true }); return "" },
	"go":   func(r *runner, _ []string) string { r.proxy.set(func() { r.proxy.held = false }); return "" },
	"small": func(r *runner, args []string) string {
		r.proxy.set(func() { r.proxy.small = number(r.t, args[0]) })
		return ""
	},
	"remote": func(r *runner, args []string) string { r.vars["TCP"] = r.remote(len(args) > 0); return "" },
	"delay": func(r *runner, args []string) string {
		r.proxy.set(func() { r.proxy.delay = time.Duration(number(r.t, args[0])) * time.Millisecond })
		return ""
	},
	"large": func(r *runner, args []string) string { // offers buffers of 10 MiB
		for n := range number(r.t, args[1]) {
			r.ask("buffer", []string{args[0], filepath.Join(r.root, strconv.Itoa(n)), strings.Repeat("x", 10<<20)}, nil)
		}
		return ""
	},
	"kill": func(r *runner, args []string) string { r.kill(args); return "" },
	"beside": func(r *runner, args []string) string {
		r.home.run("sh", append([]string{"-c", orphaned, "sh", built(r.t)}, args...)...)
		return ""
	},
}

// orphaned starts a program that begins once its parent is gone, so that it does not descend from what has started the client.
const orphaned = `(while kill -0 $$ 2>/dev/null; do :; done; exec "$@") >/dev/null 2>&1 &`

// cut cuts all connections: now, or "after N messages", "after N bytes down" or "after N bytes up".
func (r *runner) cut(args []string) string {
	if len(args) == 0 {
		r.proxy.cut()
		return ""
	}
	kind := map[string]unit{"messages": messages, "bytes down": bytesDown, "bytes up": bytesUp}[strings.Join(args[2:], " ")]
	r.proxy.set(func() { r.proxy.left, r.proxy.counts = number(r.t, args[1]), kind })
	return ""
}

// remote starts another daemon, which serves TCP, until the end of the case, and returns its address. It admits the token of
// the drivers, or one of its own.
func (r *runner) remote(admitted bool) string {
	cmd := exec.Command(built(r.t), "serve", "--listen", "127.0.0.1:0", "--socket", filepath.Join(r.root, "s"), "--state-dir", filepath.Join(r.root, "state"))
	if admitted {
		cmd.Args = append(cmd.Args, "--token-file", filepath.Join(r.dir, "token"))
	}
	cmd.Env, cmd.Dir = r.env, r.root
	out, write, err := os.Pipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // that it was killed
		_ = out.Close()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(lines.Text()); found != "" {
			return "tcp://" + found
		}
	}
	r.t.Fatal("the daemon has printed no address")
	return ""
}

// kill kills the daemon and starts it again: with the same journal, or with "another epoch", or "without journal".
func (r *runner) kill(args []string) {
	r.proxy.set(func() { r.proxy.isDown = true })
	if err := syscall.Kill(r.pid, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
	r.proxy.cut()
	defer func() {
		r.start()
		r.proxy.set(func() { r.proxy.isDown = false })
	}()
	switch journal := filepath.Join(r.dir, "state/toold/journal/journal.db"); strings.Join(args, " ") {
	case "another epoch":
		r.change(journal, "update meta set value = 'another' where key = 'boot'")
	case "without journal":
		if err := os.RemoveAll(filepath.Dir(journal)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// change changes the journal of a daemon that does not run.
func (r *runner) change(journal, statement string) {
	conn, err := sqlite.OpenConn(journal, sqlite.OpenReadWrite)
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, statement, nil)
	}
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
