// The two sides of the comparison. Each has a folder of its own with a home and the project in it; the names of the folders
// are equally long, and the one is replaced by the other in what is compared.

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// A side is one user with a home and a project.
type side struct {
	dir     string
	environ []string
	// state is where plain bash keeps the directory and the exports from one command to the next, as a session does.
	state string
}

// An end is what came of a command.
type end struct {
	output string
	exit   int
	took   time.Duration
	asked  []string // the reasons of questions
	tier   string
	text   string // what a model reads, if the command was not run
}

func (s *side) home() string    { return filepath.Join(s.dir, "home") }
func (s *side) project() string { return filepath.Join(s.home(), "src", "project") }

// newSide makes a home with the project in it, from a txtar archive or a folder.
func newSide(ctx context.Context, dir string, script Script, setting Setting) (*side, error) {
	s := &side{dir: dir, state: filepath.Join(dir, "state")}
	s.environ = homeEnviron(s.home())
	for path, mode := range map[string]os.FileMode{s.project(): 0o755, s.state: 0o700} {
		if err := os.MkdirAll(path, mode); err != nil {
			return nil, err
		}
	}
	if err := unpack(filepath.Join(setting.Source, "home.txtar"), s.dir); err != nil {
		return nil, err
	}
	small := filepath.Join(setting.Source, "projects", script.Name+".txtar")
	if _, err := os.Stat(small); err == nil {
		if err := unpack(small, s.project()); err != nil {
			return nil, err
		}
	} else if out, err := exec.CommandContext(ctx, "cp", "-a", filepath.Join(setting.Projects, script.Name)+"/.", s.project()).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	setup := append([]string{". ~/.setup"}, script.Setup...)
	for _, command := range setup {
		cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-ec", command)
		cmd.Dir, cmd.Env = s.project(), s.environ
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	}
	return s, nil
}

func unpack(archive, dir string) error {
	a, err := txtar.ParseFile(archive)
	if err != nil {
		return err
	}
	for _, f := range a.Files {
		path, mode := filepath.Join(dir, f.Name), os.FileMode(0o644)
		if strings.HasPrefix(string(f.Data), "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, mode); err != nil {
			return err
		}
	}
	return nil
}

// homeEnviron is the environment of a user at home, with programs below it, and dates that git does not take from the clock.
func homeEnviron(home string) []string {
	path := []string{home + "/bin", home + "/.local/bin", home + "/go/bin", os.Getenv("PATH")}
	return []string{
		"HOME=" + home, "USER=dev", "LOGNAME=dev", "SHELL=/bin/bash", "LANG=C.UTF-8", "PATH=" + strings.Join(path, ":"),
		"EDITOR=true", "API_URL=https://api.example.com", "PROJECT_ENV=dev", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_DATE=2026-01-01T00:00:00Z", "GOPROXY=off", "GOTOOLCHAIN=local",
		"CARGO_HOME=" + home + "/.cargo", "RUSTUP_HOME=" + rustup(), "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat",
		"GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive",
	}
}

// rustup is where the machine has its Rust.
func rustup() string {
	home, _ := os.UserHomeDir()
	return cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup"))
}

// inBash runs a command in plain bash, in the directory and with the exports that the command before has left.
func (s *side) inBash(ctx context.Context, command string) (end, error) {
	for name, first := range map[string]string{"dir": s.project(), "exports": "", "prelude": s.prelude()} {
		path := filepath.Join(s.state, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.WriteFile(path, []byte(first), 0o600); err != nil {
			return end{}, err
		}
	}
	out, err := os.Create(filepath.Join(s.state, "output"))
	if err != nil {
		return end{}, err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.project(), append(slices.Clip(s.environ), "BASH_ENV="+s.state+"/prelude"), out, out
	cmd.WaitDelay = time.Second
	began := time.Now()
	err = cmd.Run()
	took := time.Since(began)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return end{}, err
	}
	text, err := os.ReadFile(out.Name())
	return end{output: string(text), exit: cmd.ProcessState.ExitCode(), took: took}, err
}

// prelude is what bash reads before each command.
func (s *side) prelude() string {
	return fmt.Sprintf("unset BASH_ENV\n. %[1]s/exports\ncd \"$(cat %[1]s/dir)\"\ntrap 'pwd -P >%[1]s/dir; export -p >%[1]s/exports' EXIT\n", s.state)
}

// files returns a digest of each file of the project and of the home's top, by its name. What git keeps for itself is left
// out: it is compared by what git prints.
func (s *side) files() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(s.home(), func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.home(), path)
		switch {
		case err != nil:
			return nil //nolint:nilerr // it has gone meanwhile
		case d.IsDir() && slices.Contains(notCompared, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !d.Type().IsRegular():
			found[name] = d.Type().String()
			return nil
		}
		text, err := os.ReadFile(path)
		info, infoErr := d.Info()
		if errors.Join(err, infoErr) != nil {
			return nil //nolint:nilerr // the same
		}
		found[name] = info.Mode().String()
		if len(text) < maxCompared && !bytes.HasPrefix(text, []byte("\x7fELF")) { // compilers write the names of folders into programs
			found[name] += fmt.Sprintf(" %x", sha256.Sum256([]byte(strings.ReplaceAll(string(text), s.dir, ""))))
		}
		return nil
	})
	return found, err
}

// notCompared are folders in which programs keep what has times and places in it.
var notCompared = []string{
	".git", ".cache", ".npm", "__pycache__", "target", ".cargo", "pkg", "state", ".config", "node_modules", ".pytest_cache", ".local",
}

// maxCompared is the size from which only the mode of a file is compared, in bytes. Ours.
const maxCompared = 1 << 20
