// The checks of "toold doctor" that ask other parts of the program.

package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
)

// checkJournal reads a copy of the journal as a daemon would at its start. It is left out while a daemon has it open, which a
// daemon that does not answer may too.
func (d *doctor) checkJournal() {
	if d.info != nil || !d.daemon.Abandoned() {
		return
	}
	dir := filepath.Join(d.state, "journal")
	err := journal.Examine(dir)
	damage, damaged := errors.AsType[*journal.CorruptError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, journal.ErrNotExamined):
		d.note("journal", fine, "not read, since it is large", "")
	case damaged:
		d.note("journal", warning, fmt.Sprintf("the journal in %s is damaged: %v", dir, damage.Err), `run "toold start": what can be read is put into a new journal, and the damaged file is kept`)
	default:
		d.noteErr("journal", err, "", "it can be read")
	}
}

// checkSandbox finds out how processes are confined here: by asking the daemon, or by trying. The settings have whether they must be.
func (d *doctor) checkSandbox(now *settings.Settings) {
	if off := now.Sandbox.Disabled; off != nil {
		d.note("sandbox", warning, fmt.Sprintf("commands run unconfined: %s disables the sandbox", off), "")
		return
	}
	unconfined, do := fault, sandboxAdvice+`, or set "sandbox": {"required": false}, and commands run unconfined`
	if now.Sandbox.Optional != nil {
		unconfined, do = warning, sandboxAdvice
	}
	var c sandbox.Confinement
	if d.info != nil {
		c = sandbox.Confinement{Tier: sandbox.Tier(terminal.Word(d.info.GetSandbox())), NotCovered: d.info.GetNotCovered()}
	} else {
		var err error
		if c, err = tryConfinement(); err != nil {
			d.note("sandbox", unconfined, err.Error(), do)
			return
		}
	}
	switch lacks := strings.Join(c.NotCovered, " "); c.Tier {
	case sandbox.Full:
		d.note("sandbox", fine, "processes are confined fully", "")
	case sandbox.Fast:
		d.note("sandbox", warning, "processes are confined without namespaces. "+lacks, cmp.Or(namespaceAdvice(), "run the daemon where it may make namespaces"))
	default:
		d.note("sandbox", unconfined, "processes cannot be confined. "+lacks, do)
	}
}

const sandboxAdvice = "run the daemon where the kernel offers seccomp, with Landlock or user namespaces"

func tryConfinement() (c sandbox.Confinement, err error) {
	dir, err := os.MkdirTemp("", "toold-doctor-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	runner, err := sandbox.New(dir, nil)
	if err != nil {
		return c, err
	}
	c, err = runner.Confinement(sandbox.Policy{Tier: sandbox.Full})
	return c, errors.Join(err, runner.Close())
}

// checkSettings repeats what is wrong in the settings' own view, and looks for the programs that they name
// in the workspace root.
func (d *doctor) checkSettings(now *settings.Settings, root string) {
	before := len(d.found)
	broken := map[string]bool{}
	for _, err := range now.Broken {
		broken[err.Error()] = true
		d.note("settings", fault, err.Error(), "correct the file; no daemon starts with it")
	}
	for _, w := range now.Warnings {
		if !broken[w.Text] {
			d.note("settings", warning, w.Text, `"toold settings" shows what counts`)
		}
	}
	for _, h := range now.Hooks.All() {
		if why := unusable(h.Command); why != "" {
			d.note("hooks", fault, fmt.Sprintf("%s: the hook of %s %s", h.Origin, h.Event, why), "correct the path, or chmod +x the file")
		}
	}
	for _, s := range now.MCPServers {
		if s.Transport == "stdio" && s.Approved && !startable(s, root) {
			d.note("MCP server "+s.Name, fault, fmt.Sprintf("%s: its command %s was not found, or cannot be executed", s.Origin, strings.Join(s.Written.Command[:1], "")), "install it, or correct the entry")
		}
	}
	if len(d.found) == before {
		d.note("settings", fine, terminal.Count(len(now.Lines()), "value"), "")
	}
	d.checkServers()
}

// checkServers looks at the servers that the daemon has.
func (d *doctor) checkServers() {
	text := serversText(d.info)
	switch {
	case text == "":
	case slices.ContainsFunc(d.info.GetServers(), func(s *tooldv1.ServerCount) bool { return s.GetState() == "failed" && s.GetCount() > 0 }):
		d.note("servers", warning, text, "the dashboard shows what is wrong with each")
	default:
		d.note("servers", fine, text, "")
	}
}

// startable reports whether a server's command is found as the daemon looks it up: in the entry's PATH, else in this process's.
func startable(s settings.MCPServer, root string) bool {
	program, err := pathname.Program(s.Command, root, sandbox.Filter{}.Environ(os.Environ(), s.Env...))
	return err == nil && pathname.Executable(program)
}

// unusable returns why the program that a hook's command begins with cannot be run; empty: it can, or that cannot be told without a
// shell.
func unusable(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 || !filepath.IsAbs(words[0]) || strings.ContainsAny(words[0], "$`'\"\\*?;&|<>(){}[]") {
		return ""
	}
	info, err := os.Stat(words[0])
	switch {
	case err != nil:
		return "cannot be run: " + err.Error()
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return "cannot be run: " + words[0] + " is not executable"
	}
	return ""
}

// checkPrograms looks for the programs that tools use, and asks each for what it is used for.
func (d *doctor) checkPrograms(ctx context.Context) {
	for _, p := range []struct {
		name, pack, without string
		works               []string
	}{
		{"git", "git", "calls that run git fail, and toold cannot read git's settings", []string{"config", "--list", "--show-origin", "--null"}},
		{"rg", "ripgrep", "Grep searches without it", []string{"--no-config", "--null", "--multiline-dotall", "--count-matches", "--version"}},
		{"bash", "bash", "the tool Bash does not work", []string{"--version"}},
	} {
		path, err := exec.LookPath(p.name)
		if err != nil {
			d.note(p.name, warning, "it is not installed: "+p.without, "install it, for instance: sudo apt-get install "+p.pack)
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		cmd, said := exec.CommandContext(ctx, path, p.works...), strings.Builder{}
		cmd.Env, cmd.Stderr = append(os.Environ(), "LC_ALL=C"), &said
		err = cmd.Run()
		cancel()
		if err != nil {
			first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
			d.note(p.name, warning, fmt.Sprintf("%s %s: %v (%s): %s", path, strings.Join(p.works, " "), err, first, p.without), failedAdvice(first))
			continue
		}
		d.note(p.name, fine, path, "")
	}
}

// oldProgram is what programs say of an option that they do not know.
var oldProgram = regexp.MustCompile(`(?i)unknown|unrecognized|invalid option|wasn't expected`)

func failedAdvice(said string) string {
	if oldProgram.MatchString(said) {
		return "install a newer one"
	}
	return "correct what it complains of"
}

// certificateSoon is how long before its end a certificate is warned of.
const certificateSoon = 14 * 24 * time.Hour

// checkSecrets looks at the token file, if there is one, and at the certificates that were named.
func (d *doctor) checkSecrets() {
	tokens := cmp.Or(os.Getenv("TOOLD_TOKEN_FILE"), filepath.Join(d.state, "tokens"))
	if _, err := os.Lstat(tokens); err == nil {
		_, err := access.ReadToken(tokens)
		d.noteErr("tokens", err, "chmod 600 "+tokens+`; if others may have read it, put new tokens into it`, tokens)
	}
	if d.cert == "" {
		return
	}
	end, err := certificateEnd(d.cert)
	left := time.Until(end)
	switch {
	case err != nil:
		d.note("certificate", fault, err.Error(), "name a certificate in PEM")
	case left < 0:
		d.note("certificate", fault, fmt.Sprintf("%s has expired on %s", d.cert, end.Format(time.DateOnly)), "renew it, and start the daemon again")
	case left < certificateSoon:
		d.note("certificate", warning, fmt.Sprintf("%s expires on %s", d.cert, end.Format(time.DateOnly)), "renew it, and start the daemon again")
	default:
		d.note("certificate", fine, fmt.Sprintf("%s is good until %s", d.cert, end.Format(time.DateOnly)), "")
	}
}

// certificateEnd returns when the first certificate of a file expires.
func certificateEnd(file string) (time.Time, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return time.Time{}, fmt.Errorf("%s: %w", file, err)
			}
			return c.NotAfter, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s holds no certificate", file)
}
