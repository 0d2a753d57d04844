package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/tools/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	testscript.Main(m, map[string]func(){"toold": main})
}
