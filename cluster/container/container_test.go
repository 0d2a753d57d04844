//go:build linux

package container_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/cluster/container"
)

func TestMain(m *testing.M) {
	container.Init()
	m.Run()
}

// run runs a script in a new container, and returns what it printed and how it ended.
func run(t *testing.T, dir, script string, hide ...string) (string, error) {
	t.Helper()
	c, log := start(t, dir, script, hide...)
	<-c.Done()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(text)), c.Err()
}

func start(t *testing.T, dir, script string, hide ...string) (*container.Container, string) {
	t.Helper()
	return startWith(t, dir, script, func(config *container.Config) { config.Hide = hide })
}

func startWith(t *testing.T, dir, script string, change func(*container.Config)) (*container.Container, string) {
	t.Helper()
	for _, name := range []string{"files", "home", "tmp", "own"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	in := func(name string) string { return filepath.Join(dir, name) }
	config := container.Config{
		Workspace: in("files"), Home: in("home"), Tmp: in("tmp"), Own: in("own"),
		Program: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
	}
	change(&config)
	c, err := container.Start(config, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c, log.Name()
}

// TestWhatIsSeen looks around in a container.
func TestWhatIsSeen(t *testing.T) {
	dir, secret := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(secret, "key"), filepath.Join(dir, "own", "file")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range [][2]string{ // in this order: some see what others have written
		{"pwd; echo $HOME $TMPDIR", "/workspace\n/home/agent /tmp"},
		{"cat /.toold/file", "text"},
		{"echo a >file; echo b >~/file; echo c >/tmp/file", ""},
		{"ls /home /root /run; ls -A /workspace ~ /tmp", "/home:\nagent\n\n/root:\n\n/run:\n/home/agent:\nfile\n\n/tmp:\nfile\n\n/workspace:\nfile"},
		{"cat " + secret + "/key 2>/dev/null || echo hidden", "hidden"},
		{`tr '\0' '\n' </proc/1/cmdline | head -1`, "toold-container-init"},
		{"awk '{print $2}' /proc/mounts | grep '^/old$'", ""},
		{"echo x 2>/dev/null >/etc/x || echo no; echo x 2>/dev/null >/usr/x || echo no; echo x 2>/dev/null >/sys/x || echo no", "no\nno\nno"},
		{"cd /dev; ls", "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero"},
		{"echo x >/dev/null; echo x >/dev/shm/x; echo x >/var/tmp/x; rm /tmp/x; head -c 3 /dev/zero | wc -c", "3"},
		{"id -u", "0"},
		{"umount " + secret + " 2>/dev/null; umount /tmp 2>/dev/null; mount -o remount,bind,rw /etc 2>/dev/null; cat " + secret + "/key 2>/dev/null; (>/etc/x) 2>/dev/null || echo no", "no"},
		{"for f in /proc/1/fd/*; do [ -d $f ] && echo $f; done; echo none", "none"}, // that leads out
		{"ls /proc/1/root/ 2>/dev/null | wc -l", "0"},
	} {
		script, want := step[0], step[1]
		got, err := run(t, dir, script, secret)
		if err != nil && want != "" || got != want {
			t.Errorf("%s: %q, %v; want %q", script, got, err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "files", "file")); err != nil || string(text) != "a\n" {
		t.Errorf("the workspace's file holds %q, %v", text, err)
	}
	if got, _ := run(t, dir, "ls -A /etc/ssl", "/etc/ssl", "/there/is/nothing"); got != "" {
		t.Errorf("a hidden directory holds %q", got)
	}
}

// TestFixed: a file that is fixed is read, and stays as it is whatever is tried.
func TestFixed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "own", "settings.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("limits"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `cd /.toold; (echo x >settings.json) 2>/dev/null; rm -f settings.json 2>/dev/null; echo y >new; mv new settings.json 2>/dev/null
umount settings.json 2>/dev/null; mount -o remount,bind,rw settings.json 2>/dev/null; (echo z >settings.json) 2>/dev/null; chmod 666 settings.json 2>/dev/null; cat settings.json new`
	c, log := startWith(t, dir, script, func(config *container.Config) { config.Fixed = []string{"settings.json"} })
	<-c.Done()
	if text, err := os.ReadFile(log); err != nil || string(text) != "limitsy\n" {
		t.Errorf("the script prints %q, %v", text, err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "limits" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// TestResolver: the file by which programs find name servers is seen though a link leads to it below a directory that is hidden, and nothing
// else of that is.
func TestResolver(t *testing.T) {
	hidden, err := os.MkdirTemp("/var/lib", "toold-test-")
	if err != nil {
		t.Skip("no directory can be made that is seen in a container:", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(hidden) })
	if err := os.Mkdir(filepath.Join(hidden, "resolve"), 0o755); err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(hidden, "resolve", "stub.conf"), filepath.Join(t.TempDir(), "resolv.conf")
	for _, name := range []string{file, filepath.Join(hidden, "secret")} {
		if err := os.WriteFile(name, []byte("nameserver 127.0.0.53\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	c, log := startWith(t, t.TempDir(), "cat "+file+"; find "+hidden+" -type f; (echo >"+file+") 2>/dev/null || echo read only", func(config *container.Config) {
		config.Hide, config.Resolver = []string{hidden}, link
	})
	<-c.Done()
	text, err := os.ReadFile(log)
	if err != nil || string(text) != "nameserver 127.0.0.53\n"+file+"\nread only\n" {
		t.Errorf("the container printed %q, %v", text, err)
	}
}

// TestKillEndsEverything ends a container with processes that have left their parent, their session and their signals.
func TestKillEndsEverything(t *testing.T) {
	dir := t.TempDir()
	c, _ := start(t, dir, `for i in 1 2 3; do setsid sh -c "trap '' TERM HUP INT; >/tmp/up$i; exec sleep 1000" & done
		until [ -e /tmp/up1 ] && [ -e /tmp/up2 ] && [ -e /tmp/up3 ]; do sleep 0.01; done; echo all >/workspace/all; wait`)
	waitFor(t, filepath.Join(dir, "files", "all"))
	marker := fmt.Sprintf("%s/files", dir)
	before := inside(t, marker)
	if len(before) < 4 {
		t.Fatalf("the container has the processes %q", before)
	}
	c.Kill()
	if left := inside(t, marker); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if c.Err() == nil {
		t.Error("a killed container has ended well")
	}
}

func TestEnds(t *testing.T) {
	dir := t.TempDir()
	if _, err := run(t, dir, "exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("after exit 3: %v", err)
	}
	c, log := start(t, dir, `trap 'echo told; exit 0' TERM; echo up >/workspace/up; while :; do sleep 0.05; done`)
	waitFor(t, filepath.Join(dir, "files", "up"))
	c.Terminate()
	<-c.Done()
	if text, _ := os.ReadFile(log); c.Err() != nil || string(text) != "told\n" {
		t.Errorf("after SIGTERM: %q, %v", text, c.Err())
	}
	if _, err := container.Start(container.Config{Workspace: filepath.Join(dir, "nowhere"), Program: "/bin/sh"}, nil); err == nil {
		t.Error("a container without a workspace was started")
	}
}

// waitFor waits until a file exists.
func waitFor(t *testing.T, file string) {
	t.Helper()
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the test has ended")
		}
		runtime.Gosched()
	}
}

// inside returns the processes whose root has the workspace mounted.
func inside(t *testing.T, workspace string) (found []string) {
	t.Helper()
	mounts, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range mounts {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), workspace+" /workspace ") {
			found = append(found, file)
		}
	}
	return found
}

// TestBeatProlongs: a container that gets a beat lives on when what it was started with is over.
func TestBeatProlongs(t *testing.T) {
	t.Parallel()
	const first = 4 * time.Second
	since := container.Now().Add(first - time.Hour)
	c, log := startWith(t, t.TempDir(), `sleep 1000`, func(config *container.Config) { config.Lives, config.Since = time.Hour, since })
	c.Beat(container.Now())
	over := time.NewTimer(time.Duration(since.Add(time.Hour+time.Second) - container.Now()))
	defer over.Stop()
	select {
	case <-over.C:
	case <-c.Done():
		text, _ := os.ReadFile(log)
		t.Errorf("it has ended: %s", text)
	}
}

// TestBeat: a container ends with everything in it when it gets no beat, although nothing asks it to.
func TestBeat(t *testing.T) {
	dir := t.TempDir()
	c, _ := startWith(t, dir, `trap '' TERM; setsid sh -c 'echo up >/workspace/up; exec sleep 1000' & sleep 1000`, func(config *container.Config) {
		config.Lives, config.Since = time.Hour, container.Now()
	})
	waitFor(t, filepath.Join(dir, "files", "up"))
	c.Beat(container.Now().Add(-time.Hour)) // an older one shortens nothing
	if len(inside(t, dir+"/files")) < 3 {
		t.Error("the container has ended")
	}
	c.Kill()

	config := container.Config{Workspace: dir, Home: dir, Tmp: dir, Own: dir, Program: "/bin/sh", Lives: time.Hour, Since: container.Now().Add(-time.Hour)}
	if _, err := container.Start(config, nil); err == nil || !strings.Contains(err.Error(), "its time was over") {
		t.Errorf("a program that is started when its time is over: %v", err)
	}

	ended, log := startWith(t, dir, `sleep 1000`, func(config *container.Config) {
		config.Lives, config.Since = time.Hour, container.Now().Add(-time.Hour).Add(500*time.Millisecond)
	})
	ended.Beat(container.Now().Add(-time.Hour).Add(time.Second))
	<-ended.Done()
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "nothing was acknowledged for 1h0m0s") || ended.Err() == nil {
		t.Errorf("it has ended with %v, %v: %s", ended.Err(), err, text)
	}
	if left := inside(t, dir+"/files"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
