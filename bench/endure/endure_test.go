package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/clients/clienttest"
	"github.com/toold/toold/tools/exec/sandbox"
)

// binary is the daemon's, built for the tests.
var binary string

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") { // this program, as tests start it
		main()
		return
	}
	os.Exit(built(m))
}

func built(m *testing.M) int {
	dir, err := os.MkdirTemp("", "endure")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "toold")
	if err := clienttest.Build(binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestCrash is the bounded part of `make crash`: one kill at each record of the scripted turn, as many under load.
func TestCrash(t *testing.T) {
	if err := crash(t.Context(), binary, 1, 0, 30, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// TestFlap: a client that is killed five times a second ends with the records of one that stayed.
func TestFlap(t *testing.T) {
	if err := flap(t.Context(), binary, 3*time.Second, 200*time.Millisecond, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// TestMemory is the bounded part of `make memory`: 200 MiB of buffers and more options than go into one message.
func TestMemory(t *testing.T) {
	b := burden{
		editors: 10, buffers: 4, bufferBytes: 5 << 20, holders: 45, optionBytes: 100_000, envBytes: 20_000, toolBytes: 10_000,
		spillers: 3, spillBytes: 16 << 20, peak: 640 << 10, idle: 90 << 10, within: 5 * time.Minute,
	}
	if err := memory(t.Context(), binary, b, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// TestBuilds is the bounded part of `make builds`: each session builds once, or is refused after two seconds. The small calls may
// wait for longer.
func TestBuilds(t *testing.T) {
	r := rush{sessions: 20, places: 2, cpu: time.Second, megabytes: 20, quiet: 3, limits: `, "host_wait": "2s", "host_quick": "800ms"`}
	if err := builds(t.Context(), binary, r, t.Output()); err != nil {
		t.Fatal(err)
	}
}

// TestSoak is the bounded part of `make soak`.
func TestSoak(t *testing.T) {
	if err := soak(t.Context(), 3*time.Second, 4, 1, t.Output()); err != nil {
		t.Fatal(err)
	}
}
