//go:build linux

// Package container runs a program apart from everything else on the machine: in
// namespaces of its own, where it is process 1's only child, its workspace is
// at /workspace, and /tmp and the home directory are its own. The end of a
// container is the end of every process in it.
//
// The rest of the machine's files are where they are, so that compilers and
// shells work, but cannot be written, and the directories that [Config].Hide
// names are empty. Of the devices there are those without a machine behind them.
// The network is the machine's.
//
// The program runs as the user that has started the container. If that is root it can
// read what only root may read: a node has a user of its own.
//
// It does not know what the program does.
package container

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Where the parts of a container are, seen from inside.
const (
	Workspace = "/workspace"
	Home      = "/home/agent"
	Own       = "/.toold" // Config.Own; the program is there too
)

// initName is what this program is called where it is process 1 of a container.
const initName = "toold-container-init"

// Config is what a container consists of. The directories are absolute and exist.
type Config struct {
	Workspace string // becomes /workspace
	Home      string // becomes the home directory
	Tmp       string // becomes /tmp
	// TmpReadOnly has nothing be written there.
	TmpReadOnly bool
	Own         string // becomes /.toold: for the program's own files
	// Fixed are files of Own, by their paths there, that nothing in the container can write, replace or remove.
	Fixed []string
	// Below are directories that are mounted below /.toold, by their paths there. Own has directories in their places.
	Below map[string]string
	// Hide are directories of the machine which are empty in the container, beside /home, /root and /run. Those
	// that do not exist are passed over.
	Hide []string
	// Resolver is the machine's file by which programs find name servers. It is seen also where it is in a directory that is hidden. Empty:
	// /etc/resolv.conf.
	Resolver string
	Program  string   // an executable file; it becomes /.toold/program
	Args     []string // without the program
	Env      []string // all of the environment but HOME and TMPDIR
	// Lives is how long the container lives after Since, and after each later [Container.Beat]. 0: without a limit.
	Lives time.Duration
	Since Instant
	// Groups bound what the container uses; nil: nothing does. Name is that of its groups, of letters, digits and dashes: no other
	// container has it at the time.
	Groups  *Groups `json:"-"`
	Name    string
	Entries []string // set by [Start]: of the groups
}

// A Container is a running program with whatever it has started.
type Container struct {
	cmd    *exec.Cmd
	groups *Groups
	name   string
	killed atomic.Bool
	beats  *os.File // to process 1
	last   lastBeat
	done   chan struct{} // closed when nothing of the container is running any more
	err    error         // set before done is closed
}

// Start starts a container, whose output goes to log. It returns when the container is set up and the program has been
// started. If the calling process dies the container is killed.
func Start(config Config, log *os.File) (c *Container, err error) {
	config.Resolver = cmp.Or(config.Resolver, "/etc/resolv.conf")
	if config.Entries, err = config.Groups.create(config.Name); err != nil {
		return nil, &GroupsError{err}
	}
	defer func() {
		if err != nil {
			config.Groups.remove(config.Name)
		}
	}()
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	beatsEnd, beats, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	defer beatsEnd.Close() // the container has its own
	c = &Container{groups: config.Groups, name: config.Name, done: make(chan struct{}), cmd: &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{initName, string(text)}, Env: []string{}, Dir: "/", Stdout: log, Stderr: log, ExtraFiles: []*os.File{out, beatsEnd},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
			Pdeathsig:   syscall.SIGKILL,
			Setsid:      true, // a signal that stops the calling process and its group does not stop the container
		},
	}}
	c.beats = beats
	started := make(chan error)
	go c.run(started)
	err = <-started
	_ = out.Close() // the container has its own
	if err != nil {
		_ = beats.Close()
		return nil, fmt.Errorf("a container needs user namespaces, and cannot be made: %w", err)
	}
	if why, err := readAll(in); why != "" || err != nil {
		c.Kill()
		return nil, errors.Join(fmt.Errorf("the container cannot be set up: %s", why), err)
	}
	return c, nil
}

// run starts process 1 and waits for it, on a thread of its own: the kernel kills the process when the thread that
// has started it ends.
func (c *Container) run(started chan<- error) {
	runtime.LockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	c.err = c.cmd.Wait()
	_ = c.beats.Close()
	c.groups.remove(c.name)
	close(c.done)
}

// readAll returns what process 1 reports: nothing if the program runs.
func readAll(in *os.File) (string, error) {
	why := make([]byte, 4096)
	n, err := in.Read(why)
	if n == 0 {
		err = nil // the end: it was closed when the program was executed
	}
	return string(why[:n]), err
}

// Terminate asks the program to end, as SIGTERM does.
func (c *Container) Terminate() { _ = c.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends every process in the container, and returns when none is left.
func (c *Container) Kill() {
	c.killed.Store(true)
	_ = c.cmd.Process.Kill() // process 1: the kernel ends the others with it, before it can be waited for
	<-c.done
}

// Done is closed when nothing of the container is running any more.
func (c *Container) Done() <-chan struct{} { return c.done }

// Err returns how the program ended: nil if it did so by itself with status 0. It may be called once Done is closed.
func (c *Container) Err() error {
	if c.killed.Load() {
		return errors.New("the container was killed")
	}
	return c.err
}
