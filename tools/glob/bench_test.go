package glob

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/index"
)

// BenchmarkGlob finds files of GOROOT/src whose directories are remembered. BenchmarkRipgrepFiles is its control: the
// same names from rg, started again each time, unsorted.
func BenchmarkGlob(b *testing.B) {
	set := index.NewSet(64 << 20)
	defer set.Close()
	for _, pattern := range []string{"**/*.go", "**/*_plan9.go", "crypto/**/*.go"} {
		b.Run(strings.ReplaceAll(pattern, "/", "|"), func(b *testing.B) {
			b.ReportAllocs()
			env := newEnv(b, filepath.Join(runtime.GOROOT(), "src"))
			env.Index = set.Of("one")
			for b.Loop() {
				_, found, err := call(context.Background(), env, Input{Pattern: pattern})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(found.Total), "files")
			}
		})
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
