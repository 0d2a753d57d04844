package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDashboardInChromium: a person watches, answers, undoes and stops with the keyboard, wide and narrow, in light and dark, and axe
// finds nothing serious. testdata/browser/drive.mjs is what the person does. TOOLD_SHOTS names a folder that keeps the pictures.
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
	cmd := exec.CommandContext(ctx, node, script, toold, filepath.Join(h.dir, "run", "toold", "toold.sock"), work, shots)
	cmd.Env = append(h.environ, "CHROMIUM="+chromium, "NO_PROXY=127.0.0.0/8", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "everything was seen") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestDashboardAddress: the address goes through a file that only the user can read, and is in no argument.
func TestDashboardAddress(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	seen := filepath.Join(h.dir, "seen")
	opener := filepath.Join(h.dir, "opener")
	put(t, opener, "#!/bin/sh\necho \"$@\" > "+seen+"\n")
	if err := os.Chmod(opener, 0o700); err != nil {
		t.Fatal(err)
	}
	h.environ = append(h.environ, "BROWSER="+opener, "XDG_CACHE_HOME="+filepath.Join(h.dir, "cache"))
	said := h.toold(t, h.dir, 0, "dashboard")
	holds(t, "what is printed", said, "your browser: http://127.0.0.1:")
	page := strings.TrimSpace(content(t, seen))
	info, err := os.Stat(page)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(said+page, "#") {
		t.Errorf("the browser opens %s: %v %v", page, info, err)
	}
	holds(t, "the page", content(t, page), `location.replace("http://127.0.0.1:`, "#")
}
