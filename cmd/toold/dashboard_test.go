package main

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestDashboardInChromium: a person watches, answers, undoes and stops with the keyboard, wide and narrow, in light and dark, and axe
// finds nothing serious. testdata/browser/drive.mjs is what the person does. TOOLD_SHOTS names a folder that keeps the pictures, MANY is
// how many calls the long list has.
func TestDashboardInChromium(t *testing.T) {
	t.Parallel()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		skip(t, "install chromium")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		skip(t, "install nodejs")
	}
	if _, err := os.Stat("testdata/browser/node_modules/playwright-core"); err != nil {
		skip(t, `this test needs what "make clients" installs in cmd/toold/testdata/browser`)
	}
	script, err := filepath.Abs("testdata/browser/drive.mjs")
	if err != nil {
		t.Fatal(err)
	}
	toold, err := exec.LookPath("toold")
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, map[string]string{"config/toold/settings.json": `{"permissions": {"allow": ["Bash(make *)"]}, "env": {"API_TOKEN": "not-to-be-shown-3141592653"}}`})
	shots := os.Getenv("TOOLD_SHOTS")
	if shots == "" {
		shots = t.TempDir()
	}
	work := filepath.Join(h.dir, "poems")
	put(t, filepath.Join(work, "README"), "Poems.\n")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, script, toold, filepath.Join(h.dir, "run", "toold", "toold.sock"), work, shots, installAsking(t))
	cmd.Env = append(h.environ, "CHROMIUM="+chromium, "NO_PROXY=127.0.0.0/8", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "everything was seen") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out) // how evenly the list scrolls
}

// askingProgram asks for a hidden line on /dev/tty, and writes it to the file "got".
const askingProgram = `package main

import ("fmt"; "os"; "os/exec")

func main() {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil { fmt.Println(err); os.Exit(1) }
	stty := func(mode string) { c := exec.Command("stty", mode); c.Stdin = tty; if err := c.Run(); err != nil { fmt.Println(err); os.Exit(2) } }
	stty("-echo")
	fmt.Fprint(tty, "Password: ")
	var line string
	fmt.Fscanln(tty, &line)
	stty("echo")
	if err := os.WriteFile("got.new", []byte(line), 0o600); err != nil { fmt.Println(err); os.Exit(3) }
	if err := os.Rename("got.new", "got"); err != nil { fmt.Println(err); os.Exit(4) }
}`

// installAsking builds that program outside every place that a session can write. Hidden lines are asked for on Linux alone: elsewhere it
// returns no name.
func installAsking(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return ""
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(me.HomeDir, "asking")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	put(t, filepath.Join(dir, "main.go"), askingProgram)
	program := filepath.Join(dir, "asking")
	if out, err := exec.Command("go", "build", "-o", program, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestDashboardAddress: the address goes through a file that only the user can read, and is in no argument.
func TestDashboardAddress(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	seen := filepath.Join(h.dir, "seen")
	opener := filepath.Join(h.dir, "bin", "xdg-open") // which reads BROWSER itself
	put(t, opener, "#!/bin/sh\necho \"$@\" > "+seen+"\n")
	if err := os.Chmod(opener, 0o700); err != nil {
		t.Fatal(err)
	}
	h.environ = append(h.environ, "BROWSER=links:w3m", "PATH="+filepath.Dir(opener)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+filepath.Join(h.dir, "cache"))
	said := h.toold(t, h.dir, 0, "dashboard")
	holds(t, "what is printed", said, "your browser: http://127.0.0.1:", "use --show")
	page := strings.TrimSpace(content(t, seen))
	info, err := os.Stat(page)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(said+page, "#") {
		t.Errorf("the browser opens %s: %v %v", page, info, err)
	}
	holds(t, "the page", content(t, page), `location.replace("http://127.0.0.1:`, "#")
}
