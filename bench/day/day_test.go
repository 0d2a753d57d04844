package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/clients/clienttest"
)

// What is asked and what differs at most, in percent. Chapter 13 of what toold must do sets both.
const mostAsked = 10

// TestDay runs a part of the corpus in both modes; TOOLD_ALL runs all of it. Commands that differ for a known reason
// count as different, and may be two in a hundred.
func TestDay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("run this on Linux: the sandbox is Linux's")
	}
	toold := filepath.Join(t.TempDir(), "toold")
	if err := clienttest.Build(toold); err != nil {
		t.Fatal(err)
	}
	scripts, err := ReadCorpus("corpus")
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"bypass", "default"} {
		for _, s := range scripts {
			if os.Getenv("TOOLD_ALL") == "" && s.Name != "c" {
				continue
			}
			t.Run(mode+"/"+s.Name, func(t *testing.T) {
				if missing := s.Missing(); missing != "" {
					skip(t, "install "+missing)
				}
				tally, err := s.Run(t.Context(), Setting{Toold: toold, Source: ".", Mode: mode})
				if err != nil {
					t.Fatal(err)
				}
				tally.check(t)
			})
		}
	}
}

func (t Tally) check(test *testing.T) {
	test.Helper()
	test.Log(t)
	for _, d := range t.Differences {
		test.Log(d)
	}
	unexplained := t.Commands - t.Same - t.Known
	if unexplained > 0 || t.Known*100 > 2*t.Commands {
		test.Errorf("%d of %d commands come out differently, %d of them for a known reason", unexplained+t.Known, t.Commands, t.Known)
	}
	if t.Asked*100 > mostAsked*t.Reads {
		test.Errorf("%d of %d commands that only read were asked about", t.Asked, t.Reads)
	}
}

// skip skips, but not where everything is to be run.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func TestCorpusIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.txt"), []byte("q what\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCorpus(dir); err == nil {
		t.Error("a line that begins with no known word was read")
	}
}

// TestKnownReasons holds the corpus to the list of reasons in the docs.
func TestKnownReasons(t *testing.T) {
	text, err := os.ReadFile("../../docs/plain-bash.md")
	if err != nil {
		t.Fatal(err)
	}
	list := strings.ToLower(strings.ReplaceAll(string(text), "`", ""))
	for _, dir := range []string{"corpus", "corpus/real"} {
		scripts, err := ReadCorpus(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scripts {
			for _, c := range s.Commands {
				if !strings.Contains(list, strings.ToLower(c.Known)) {
					t.Errorf("%s: docs/plain-bash.md does not have the reason %q of %s", s.Name, c.Known, c.Text)
				}
			}
		}
	}
}
