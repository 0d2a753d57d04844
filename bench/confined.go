// What it costs to confine a process: a bash that does nothing, started as the daemon starts those of its tools, against one
// that os/exec starts. It speaks to no daemon and does not know how anything is confined.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/repo"
)

// startsPerRound is how many starts a round of the other comparisons stands for: each is a sample here, since what is asked
// is how fast it goes when nothing else is in its way.
const startsPerRound = 20

// doNothing is the command of all of them.
var doNothing = []string{"bash", "--noprofile", "--norc", "-c", ":"}

// measureConfined prints what a start costs under each confinement that works here.
func measureConfined(ctx context.Context, only func(name string) bool, rounds int) (err error) {
	g, err := newGround()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	fmt.Printf("%d places, %d protected paths at which nothing stands, user %d\n\n", len(g.acting().Places), len(g.acting().Absent), os.Geteuid())
	fmt.Println("| started by | ratio, p10 | ratio, p50 | p10 | p50 | os/exec, p10 | control moved |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, c := range g.comparisons() {
		if !only(c.Name) {
			continue
		}
		s, err := c.Settled(ctx, rounds*startsPerRound)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		fmt.Println(startRow(c, s))
	}
	return nil
}

// startRow is a line of the table. Unlike row it compares quantile with quantile: the lower one is
// what both cost when no other process uses the machine.
func startRow(c ratio.Comparison, s ratio.Samples) string {
	compared := func(q float64) string {
		if s.Moved > ratio.DriftLimit {
			return "thrown away"
		}
		return fmt.Sprintf("%.2f x", ratio.Quantile(s.Toold, q)/ratio.Quantile(s.Control, q))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %.0f %% |", c.Name, compared(0.1), compared(0.5), ratio.Duration(ratio.Quantile(s.Toold, 0.1)),
		ratio.Duration(ratio.Quantile(s.Toold, 0.5)), ratio.Duration(ratio.Quantile(s.Control, 0.1)), s.Moved*100)
}

// A ground is a workspace with a repository, a home and a daemon's state, all empty, and what starts processes there.
type ground struct {
	base, root string
	environ    []string
	runner     *sandbox.Runner
	fresh      int
}

func newGround() (g *ground, err error) {
	g = &ground{environ: sandbox.Environ(os.Environ())}
	if g.base, err = os.MkdirTemp("/var/tmp", "bench"); err != nil { // not /tmp, which a sandbox has for itself
		return nil, err
	}
	g.root = filepath.Join(g.base, "root")
	for _, dir := range []string{"root/.git/hooks", "root/.git/info", "home/.ssh", "home/.config/gh", "state/cache", "state/temp"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(g.base, dir), 0o700))
	}
	for _, file := range []string{"root/.git/config", "home/.netrc"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(g.base, file), nil, 0o600))
	}
	if err == nil {
		g.runner, err = sandbox.New(filepath.Join(g.base, "state"), nil)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.base))
	}
	return g, nil
}

func (g *ground) close() error { return errors.Join(g.runner.Close(), os.RemoveAll(g.base)) }

// comparisons lists what is measured. os/exec is its own control once, which shows how far the figures can be trusted.
func (g *ground) comparisons() []ratio.Comparison {
	list := []ratio.Comparison{
		{Name: "os/exec, against itself", Toold: g.executing(g.plain)},
		{Name: "os/exec, output not collected", Toold: g.executing(g.silent)},
		{Name: "the daemon, unconfined", Toold: g.starting(func() sandbox.Policy { return sandbox.Policy{} })},
	}
	for _, c := range []struct {
		name   string
		policy func() sandbox.Policy
	}{
		{"the daemon, fast tier", g.reading}, {"the daemon, full tier", g.acting}, {"the daemon, full tier, the first of its kind", g.anew},
	} {
		if got, err := g.runner.Confinement(c.policy()); err == nil && got.Tier == c.policy().Tier {
			list = append(list, ratio.Comparison{Name: c.name, Toold: g.starting(c.policy)})
		}
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		args := g.bubblewrap()
		list = append(list, ratio.Comparison{Name: "os/exec through bubblewrap", Toold: g.executing(func() *exec.Cmd { return collecting(exec.Command(bwrap, args...)) })})
	}
	for i := range list {
		list[i].Control = g.executing(g.plain)
	}
	return list
}

// plain runs bash as a program would that has no daemon.
func (g *ground) plain() *exec.Cmd { return collecting(g.silent()) }

func (g *ground) silent() *exec.Cmd { return exec.Command("/bin/bash", doNothing[1:]...) }

func collecting(cmd *exec.Cmd) *exec.Cmd {
	cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	return cmd
}

func (g *ground) executing(command func() *exec.Cmd) ratio.Work {
	return func(context.Context) (time.Duration, error) {
		start := time.Now()
		cmd := command()
		cmd.Dir, cmd.Env = g.root, g.environ
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("%s: %w: %s", cmd, err, cmd.Stderr)
		}
		return time.Since(start), nil
	}
}

func (g *ground) starting(policy func() sandbox.Policy) ratio.Work {
	return func(context.Context) (time.Duration, error) {
		p := policy()
		var stdout, stderr bytes.Buffer
		start := time.Now()
		process, err := g.runner.Start(sandbox.Command{
			ID: "bench", Path: "/bin/bash", Args: doNothing, Dir: g.root, Env: g.environ, Stdout: &stdout, Stderr: &stderr, Policy: p,
		})
		if err != nil {
			return 0, err
		}
		exit := process.Wait()
		took := time.Since(start)
		if exit.Code != 0 || len(exit.Denials) > 0 {
			return 0, fmt.Errorf("%+v: %s", exit, &stderr)
		}
		return took, nil
	}
}

// hidden is what the daemon hides from every process when no settings say anything. Few of it is there, as in most homes.
func (g *ground) hidden() (places []sandbox.Place) {
	for _, name := range []string{
		".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube", ".docker/config.json", ".netrc",
		".git-credentials", ".config/git/credentials", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
		".terraform.d/credentials.tfrc.json", ".password-store", ".local/share/keyrings", ".config/op", ".vault-token", ".databrickscfg",
		".pgpass", ".my.cnf", ".config/1Password", ".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird",
	} {
		places = append(places, sandbox.Place{Path: filepath.Join(g.base, "home", name)})
	}
	return append(places, sandbox.Place{Path: filepath.Join(g.base, "state")})
}

// reading is the policy of a command that only reads.
func (g *ground) reading() sandbox.Policy {
	return sandbox.Policy{Tier: sandbox.Fast, Strict: true, Limits: sandbox.Limits{Processes: 4096}, Places: append(g.hidden(),
		sandbox.Place{Path: g.root, Access: sandbox.Read}, sandbox.Place{Path: filepath.Join(g.base, "state/temp"), Access: sandbox.Write},
		sandbox.Place{Path: "/tmp", Access: sandbox.Write, Source: filepath.Join(g.base, "state/temp")},
	)}
}

// acting is the policy of any other.
func (g *ground) acting() sandbox.Policy {
	p := g.reading()
	p.Tier, p.Strict = sandbox.Full, false
	git := filepath.Join(g.root, ".git")
	p.Places = append(p.Places, sandbox.Place{Path: filepath.Join(g.base, "state/cache"), Access: sandbox.Write})
	p.Places[slices.IndexFunc(p.Places, func(p sandbox.Place) bool { return p.Path == g.root })].Access = sandbox.Write
	for _, path := range slices.Concat(permission.ProtectedIn(g.root), repo.GuardedIn(git)) {
		if _, err := os.Lstat(path); err == nil {
			p.Places = append(p.Places, sandbox.Place{Path: path, Access: sandbox.Read})
		} else {
			p.Absent = append(p.Absent, path)
		}
	}
	return p
}

// anew is acting for a policy that was never seen before.
func (g *ground) anew() sandbox.Policy {
	g.fresh++
	p := g.acting()
	p.Places = append(p.Places, sandbox.Place{Path: filepath.Join(g.base, "never", strconv.Itoa(g.fresh))})
	return p
}

// bubblewrap returns the arguments for what acting asks of namespaces. It has neither the filter nor Landlock.
func (g *ground) bubblewrap() []string {
	args := []string{
		"--unshare-ipc", "--unshare-pid", "--unshare-net", "--new-session", "--die-with-parent", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
	}
	for _, p := range g.acting().Places {
		info, err := os.Lstat(p.Path)
		if p.Source == "" {
			p.Source = p.Path
		}
		switch {
		case err != nil:
		case p.Access == sandbox.Write:
			args = append(args, "--bind", p.Source, p.Path)
		case p.Access == sandbox.Read:
			args = append(args, "--ro-bind", p.Source, p.Path)
		case info.IsDir():
			args = append(args, "--tmpfs", p.Path)
		default:
			args = append(args, "--ro-bind", "/dev/null", p.Path)
		}
	}
	return slices.Concat(args, []string{"--chdir", g.root, "--", "/bin/bash"}, doNothing[1:])
}
