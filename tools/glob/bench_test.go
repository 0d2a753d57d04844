package glob

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// BenchmarkGlob finds the Go files of GOROOT/src. BenchmarkRipgrepFiles is its control: the same names from rg, started
// again each time, unsorted.
func BenchmarkGlob(b *testing.B) {
	env := newEnv(b, filepath.Join(runtime.GOROOT(), "src"))
	for b.Loop() {
		_, found, err := call(context.Background(), env, Input{Pattern: "**/*.go"})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(found.Total), "files")
	}
}

func BenchmarkRipgrepFiles(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("rg is not installed; there is nothing to compare with")
	}
	for b.Loop() {
		cmd := exec.Command(rg, "--no-config", "--no-require-git", "--files", "--glob", "*.go")
		cmd.Dir = filepath.Join(runtime.GOROOT(), "src")
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(strings.Count(string(out), "\n")), "files")
	}
}
