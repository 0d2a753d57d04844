package grep

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/index"
)

// The patterns of the benchmark: a rare word, an alternation, a common word, a word in any case, and one without a text
// to look for.
var benchInputs = []struct{ name, pattern, flag string }{
	{"rare", "WithCancelCause", ""},
	{"alternation", "ErrUnexpectedEOF|ErrShortWrite|ErrClosedPipe", ""},
	{"common", "return", ""},
	{"anycase", "withcancelcause", "-i"},
	{"class", "[a-z]+_[0-9]{4}", ""},
	{"word", `\bgopark\b`, ""},
}

// BenchmarkGrep searches GOROOT/src for file names, as it is offered, with what earlier searches remember.
// BenchmarkRipgrep is its control: the same by rg alone, started again each time. They find the same files.
func BenchmarkGrep(b *testing.B) {
	runner, err := sandbox.New(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer runner.Close()
	env := newEnv(b, filepath.Join(runtime.GOROOT(), "src"))
	env.Box = &sandbox.Box{Runner: runner}
	set := index.NewSet(256 << 20)
	defer set.Close()
	env.Index = set.Of("one")
	for _, in := range benchInputs {
		input := fmt.Sprintf(`{"pattern": %q, "-i": %v}`, in.pattern, in.flag != "")
		b.Run(in.name, func(b *testing.B) {
			var files int64
			if _, _, err := call(context.Background(), Tool(), env, `{"pattern": "WithCancelCause"}`); err != nil {
				b.Fatal(err)
			}
			set.Wait()
			for b.Loop() {
				_, found, err := call(context.Background(), Tool(), env, input)
				if err != nil {
					b.Fatal(err)
				}
				files = found.Total.Files
			}
			b.ReportMetric(float64(files), "files")
		})
	}
}

func BenchmarkRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("rg is not installed; there is nothing to compare with")
	}
	for _, in := range benchInputs {
		b.Run(in.name, func(b *testing.B) {
			args := []string{"--no-config", "--no-require-git", "--hidden", "-l", "-e", in.pattern}
			if in.flag != "" {
				args = append(args, in.flag)
			}
			files := 0
			for b.Loop() {
				cmd := exec.Command(rg, args...)
				cmd.Dir = filepath.Join(runtime.GOROOT(), "src")
				out, err := cmd.Output()
				if err != nil {
					b.Fatal(err)
				}
				files = countLines(out)
			}
			b.ReportMetric(float64(files), "files")
		})
	}
}

func countLines(out []byte) (n int) {
	for _, c := range out {
		if c == '\n' {
			n++
		}
	}
	return n
}
