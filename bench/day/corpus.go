package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Script is the commands of some hours in one project.
type Script struct {
	Name     string   // of its file, which is also the project's
	Needs    []string // programs that have to be installed
	Setup    []string // commands that the user runs beforehand, in plain bash
	Commands []Command
}

// A Command is what an agent sends to one call.
type Command struct {
	Text  string
	Reads bool   // it changes nothing
	Known string // why it comes out differently; empty: it must not
}

// ReadCorpus reads the scripts of a folder, in the order of their names.
//
// The lines of a script begin with a word: "needs" names programs, "setup" is a command that both users run beforehand,
// "use" includes another file of the folder, "r" is a command that only reads, "w" one that changes something, and "known"
// is the reason why the command before it comes out differently. A line that begins with a tab continues the command
// before it. Empty lines and those that begin with # are skipped.
func ReadCorpus(dir string) ([]Script, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no scripts in %s: %w", dir, err)
	}
	var scripts []Script
	for _, file := range files {
		s := Script{Name: strings.TrimSuffix(filepath.Base(file), ".txt")}
		if err := s.read(file); err != nil {
			return nil, err
		}
		scripts = append(scripts, s)
	}
	return scripts, nil
}

func (s *Script) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		last := len(s.Commands) - 1
		if more, ok := strings.CutPrefix(line, "\t"); ok && last >= 0 {
			s.Commands[last].Text += "\n" + more
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
		case "needs":
			s.Needs = append(s.Needs, strings.Fields(rest)...)
		case "setup":
			s.Setup = append(s.Setup, rest)
		case "use":
			if err := s.read(filepath.Join(filepath.Dir(file), rest)); err != nil {
				return err
			}
		case "r", "w":
			s.Commands = append(s.Commands, Command{Text: rest, Reads: word == "r"})
		case "known":
			s.Commands[last].Known = rest
		default:
			return fmt.Errorf("%s: %q is not a line of a script", file, line)
		}
	}
	return nil
}

// Missing returns a program that the script needs and that is not installed; empty: all are.
func (s Script) Missing() string {
	i := slices.IndexFunc(s.Needs, func(name string) bool { _, err := exec.LookPath(name); return err != nil })
	if i < 0 {
		return ""
	}
	return s.Needs[i]
}
