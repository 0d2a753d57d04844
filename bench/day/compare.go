package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// commandTime is what each command may take. Ours: twice the slowest of the corpus, a first build, on a slow machine.
const commandTime = 2 * time.Minute

// A Setting is what a comparison is made with.
type Setting struct {
	Toold, Source, Projects string
	Mode                    string // bypass or default
	Verbose                 bool
}

// A Tally counts what came of commands.
type Tally struct {
	Commands, Same, Known   int
	Reads, ReadsSame, Asked int // of those that only read
	Bash, Daemon            time.Duration
	Differences             []string
}

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.Commands, t.Same, t.Known = t.Commands+o.Commands, t.Same+o.Same, t.Known+o.Known
	t.Reads, t.ReadsSame, t.Asked = t.Reads+o.Reads, t.ReadsSame+o.ReadsSame, t.Asked+o.Asked
	t.Bash, t.Daemon = t.Bash+o.Bash, t.Daemon+o.Daemon
}

func (t Tally) String() string {
	return fmt.Sprintf("%d of %d the same (%d differ for a known reason); of %d that only read %d the same, %d asked; %.1f s in bash, %.1f s through the daemon: %.2f x",
		t.Same, t.Commands, t.Known, t.Reads, t.ReadsSame, t.Asked, t.Bash.Seconds(), t.Daemon.Seconds(), t.Daemon.Seconds()/max(t.Bash.Seconds(), 0.001))
}

// Run runs a script on both sides, command by command, and compares.
func (s Script) Run(ctx context.Context, setting Setting) (t Tally, err error) {
	base, err := os.MkdirTemp(lasting(), "toold-day-")
	if err != nil {
		return t, err
	}
	defer func() { _ = os.RemoveAll(base) }()
	sides := map[string]*side{}
	for _, name := range []string{"a", "b"} {
		if sides[name], err = newSide(ctx, filepath.Join(base, name), s, setting); err != nil {
			return t, err
		}
	}
	client, err := connect(ctx, sides["b"], setting)
	if err != nil {
		return t, err
	}
	defer client.close()
	p := pair{plain: sides["a"], confined: sides["b"], client: client, told: map[string]bool{}}
	for _, command := range s.Commands {
		if err := p.run(ctx, &t, command, setting.Verbose); err != nil {
			return t, fmt.Errorf("%s: %w", command.Text, err)
		}
	}
	return t, nil
}

// lasting is a folder that is not for temporary files, which a session has for itself.
func lasting() string {
	if os.Geteuid() == 0 {
		return "/var/lib"
	}
	home, _ := os.UserHomeDir()
	return home
}

// A pair is both sides of a comparison.
type pair struct {
	plain, confined *side
	client          *client
	told            map[string]bool // the differences between files that were counted
}

// run runs one command on both sides, those of odd numbers first in the daemon, and notes what came of it.
func (p *pair) run(ctx context.Context, t *Tally, command Command, verbose bool) (err error) {
	var ends [2]end
	first := t.Commands % 2
	for _, which := range []int{first, 1 - first} {
		text := strings.ReplaceAll(command.Text, "@TMP@", fmt.Sprintf("/tmp/day%d%c", os.Getpid(), "ab"[which]))
		if which == 0 {
			ends[0], err = p.plain.inBash(ctx, text)
		} else {
			ends[1], err = p.client.run(text)
		}
		if err != nil {
			return err
		}
	}
	if verbose {
		fmt.Printf("%6.2f %6.2f %-4s %s\n", ends[0].took.Seconds(), ends[1].took.Seconds(), ends[1].tier, command.Text)
	}
	different, err := p.differ(command, ends[0], ends[1])
	if err != nil {
		return err
	}
	t.note(command, ends[0], ends[1], different)
	return nil
}

// note counts a command.
func (t *Tally) note(command Command, plain, confined end, different string) {
	same := different == ""
	t.Commands++
	t.Bash, t.Daemon = t.Bash+plain.took, t.Daemon+confined.took
	switch {
	case same:
		t.Same++
	case command.Known != "":
		t.Known++
		t.Differences = append(t.Differences, fmt.Sprintf("KNOWN %s\n  %s", command.Text, command.Known))
	default:
		t.Differences = append(t.Differences, fmt.Sprintf("DIFFERENT %s (%s)\n%s", command.Text, confined.tier, different))
	}
	if command.Reads {
		t.Reads++
		if same {
			t.ReadsSame++
		}
		if len(confined.asked) > 0 {
			t.Asked++
			t.Differences = append(t.Differences, fmt.Sprintf("ASKED %s\n  %s", command.Text, strings.Join(confined.asked, "\n  ")))
		}
	}
}

// differ returns how two ends differ; empty: they do not.
func (p *pair) differ(command Command, plain, confined end) (string, error) {
	if confined.exit != plain.exit {
		return fmt.Sprintf("exit code %d in bash, %d through the daemon\n--- bash\n%s\n--- daemon\n%s", plain.exit, confined.exit, short(plain.output), short(confined.text)), nil
	}
	a, b := p.plain.plainly(plain.output), p.confined.plainly(confined.output)
	if a != b && sorted(a) != sorted(b) {
		return fmt.Sprintf("--- bash\n%s\n--- daemon\n%s", short(a), short(b)), nil
	}
	if command.Reads {
		return "", nil
	}
	return p.filesDiffer()
}

// filesDiffer returns which files differ since a command. A difference is counted once.
func (p *pair) filesDiffer() (string, error) {
	was, err := p.plain.files()
	if err != nil {
		return "", err
	}
	is, err := p.confined.files()
	if err != nil {
		return "", err
	}
	names := maps.Clone(is)
	maps.Copy(names, was)
	var found []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		what := fmt.Sprintf("%s: %q in bash, %q through the daemon", name, was[name], is[name])
		if is[name] != was[name] && !p.told[what] {
			p.told[what] = true
			found = append(found, what)
		}
	}
	return short(strings.Join(found, "\n")), nil
}

// varying is what differs from run to run in plain bash too: times, numbers of processes, names of temporary files.
var varying = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b\d+(\.\d+)?(e-\d+)?( ?(ns|us|µs|ms|s|sec|secs|seconds|m))\b`), "TIME"},
	{regexp.MustCompile(`\b\d+m\d+\.\d+s\b`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d(\.\d+)?)?\b`), "TIME"},
	{regexp.MustCompile(`tmp\.\w+`), "TEMPORARY"},
	{regexp.MustCompile(`/tmp/day\d+[ab]`), "/tmp/day"},
	{regexp.MustCompile(`/tmp/(tmp|go-build)\w+`), "/tmp/TEMPORARY"},
	{regexp.MustCompile(`"?duration_ms"? \d+\.\d+`), "TIME"},
}

// plainly is an output without what differs from run to run, and without the name of the side's folder.
func (s *side) plainly(text string) string {
	text = strings.ReplaceAll(text, s.dir, filepath.Dir(s.dir)+"/SIDE")
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.by)
	}
	return text
}

// sorted is a text with its lines in order: that of lines on different channels is not promised by either side.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func short(text string) string {
	const most = 1500
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
