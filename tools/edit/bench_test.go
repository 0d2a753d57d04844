package edit_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/edit"
)

// One word in a file of 1 MiB, beside what it costs to read the file and to write it durably.
func BenchmarkEdit1MiB(b *testing.B) {
	line := "\tresult, err := compute(input, options) // xxxxxxxxxxxxxxxxxxxxx\n"
	content := strings.Repeat(line, 1<<20/len(line)/2) + "the word is one here\n" + strings.Repeat(line, 1<<20/len(line)/2)
	b.Run("Edit", func(b *testing.B) {
		s := newSession(b)
		path := s.put(b, "file", []byte(content))
		words := [2]string{"word is one", "word is two"}
		var actions [2]tools.Action
		for i := range actions {
			data, err := json.Marshal(one{FilePath: path, OldString: words[i], NewString: words[1-i]})
			if err != nil {
				b.Fatal(err)
			}
			if actions[i], err = edit.Tool().Parse(data); err != nil {
				b.Fatal(err)
			}
		}
		for i := 0; b.Loop(); i++ {
			env := &tools.Env{Dir: s.Root, Files: s.View()}
			if _, err := actions[i%2].Run(b.Context(), env); err != nil {
				b.Fatal(err)
			}
			s.Learn(env.Files)
		}
	})
	b.Run("read and write", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			f, err := os.Create(path + ".new")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.Write(data); err != nil {
				b.Fatal(err)
			}
			if err := errors.Join(f.Sync(), f.Close(), os.Rename(path+".new", path)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
