// Runs the probe with no sandbox: what it then finds shut, it cannot judge.

package escape

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// lacking are the words of a kernel, a machine or a container that does not have what a door leads to.
var lacking = regexp.MustCompile(`^(ENOSYS|ENOENT|ENODEV|ENXIO|EAFNOSUPPORT|EPROTONOSUPPORT|ESOCKTNOSUPPORT|EOPNOTSUPP|ENOTTY): `)

// mayBeShut are doors that may be shut without any sandbox, and why.
var mayBeShut = map[string]string{
	"unmount what hides a file, and read it":         "nothing hides it",
	"find a hidden file's content in a block device": "the machine may keep its disk from root",
	"read a block device":                            "the same",
	"a ping socket":                                  "only groups in ping_group_range",
	"raise a hard limit":                             "containers are without CAP_SYS_RESOURCE",
	"lower /proc/self/oom_score_adj":                 "the same",
	"write outside through /proc/1/root":             "the first process may have more capabilities",
	"ptrace seize of the first process":              "the same",
	"process_vm_readv from the first process":        "the same",
	"sched_setaffinity on a process outside":         "there may be one processor only",
	"open more files than any should":                "the machine's own limit",
}

// strict are the groups that root finds wholly open wherever it is; of the others a machine may shut some.
var strict = map[string]bool{
	"works": true, "files": true, "metadata": true, "ways": true, "protected": true, "hidden": true, "proc": true,
	"processes": true, "signals": true, "sockets": true, "another session": true, "left running": true, "temporary": true, "opened": true,
	"caches": true,
}

// unconfined starts the probe with nothing around it, and hands down a directory that it did not ask for.
func unconfined(t *testing.T, s *Scene) Start {
	return func(argv, env []string, dir string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		leak, err := os.Open(s.Outside)
		if err != nil {
			return "", err
		}
		defer leak.Close()
		for dir, other := range s.Others() {
			if err := s.unconfinedBeside(ctx, dir, other); err != nil {
				return "", err
			}
		}
		c := exec.CommandContext(ctx, argv[0], argv[1:]...)
		c.Dir, c.Env, c.ExtraFiles, c.Stderr = dir, env, []*os.File{leak}, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential()}
		out, err := c.Output()
		return string(out), err
	}
}

// unconfinedBeside starts a process beside the probe, which is killed when ctx ends.
func (s *Scene) unconfinedBeside(ctx context.Context, dir string, argv []string) error {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Stderr = s.Outside, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential()}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // until ctx ends
	return os.WriteFile(dir+"/pid", []byte(strconv.Itoa(c.Process.Pid)), 0o644)
}

func TestWithoutASandboxEveryDoorIsOpen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root finds every door open: run the test as root")
	}
	s := Lay(t, "", 0)
	s.Bounds = scene.Bounds{Processes: 300, Files: 4096, Memory: 256 << 20, FileSize: 6 << 30, Filled: 32 << 20}
	doors := Run(t, s, unconfined(t, s))
	t.Log("\n" + Table(doors...))
	for _, d := range doors {
		if strict[d.Group] && !d.Open && mayBeShut[d.Name] == "" && !lacking.MatchString(d.Inside) {
			t.Errorf("%s: %q is shut without any sandbox: %s", d.Group, d.Name, d.Inside)
		}
	}
}

// A probe that is kept from everything tells of nothing, and the suite sees nothing, and waits for nothing.
func TestAProbeThatTriesNothingFindsNoDoorOpen(t *testing.T) {
	s := Lay(t, "", os.Geteuid())
	doors := Run(t, s, func([]string, []string, string) (string, error) {
		return `{"door":"chmod outside","group":"metadata","open":true,"detail":"done","outside":true}` + "\n", nil
	}, "chmod outside")
	if len(doors) != 1 || doors[0].Open {
		t.Errorf("a door is told to be open, and nothing was seen outside: %s", Table(doors...))
	}
}
