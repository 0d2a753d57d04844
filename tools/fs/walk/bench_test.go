package walk_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/tools/fs/walk"
)

// BenchmarkFiles walks GOROOT/src; BenchmarkRipgrepFiles is its control.
func BenchmarkFiles(b *testing.B) {
	dir := filepath.Join(runtime.GOROOT(), "src")
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	var seen atomic.Int64
	for b.Loop() {
		seen.Store(0)
		if _, err := walk.Files(context.Background(), root, walk.Options{Dir: dir, Visit: func(*walk.File) { seen.Add(1) }}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(seen.Load()), "files")
}

func BenchmarkRipgrepFiles(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("rg is not installed; there is nothing to compare with")
	}
	for b.Loop() {
		cmd := exec.Command(rg, "--no-config", "--no-require-git", "--files")
		cmd.Dir = filepath.Join(runtime.GOROOT(), "src")
		if out, err := cmd.Output(); err != nil || len(out) == 0 {
			b.Fatalf("rg: %v, %d bytes", err, len(out))
		}
	}
}
