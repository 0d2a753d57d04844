package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/media/pdf"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	if code, is := pdf.Main(os.Args); is {
		syscall.Exit(code) // os.Exit takes a second under the race detector
	}
	testscript.Main(m, map[string]func(){"toold": main, "kit": kit, "counted": countedMain})
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
