// Beginning the installed program in this process: it is asked before whether it can go on, and gets what it goes on with in sealed
// memory. A path never comes from a client.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/daemon"
)

const (
	// takeOverVariable names the descriptor of the memory in which the program before has left what to go on with.
	takeOverVariable = "TOOLD_TAKE_OVER"
	// answerLimit is how long the installed program may take to answer whether it can take over.
	answerLimit = 10 * time.Second
	// mostHanded is how many bytes are taken over at most. Ours: the input of all calls that may wait in a daemon is less.
	mostHanded = 1 << 30
)

// seals are those of memory that no process can change any more.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// A successor is the program that is installed at a path.
type successor struct {
	path string
	args []string
	env  []string // that this process has been started with and does not have any more
}

// newSuccessor returns the program that is installed where this one was when it began: at the path by which it was started, also
// if that is a link, else at its file's.
func newSuccessor(env []string) (*successor, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if called, err := exec.LookPath(os.Args[0]); err == nil && filepath.IsAbs(called) && sameFile(called, self) {
		self = called
	}
	return &successor{path: self, args: slices.Clone(os.Args), env: env}, nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(one, other)
}

// A takeOverAnswer is what a program prints that can take over.
type takeOverAnswer struct {
	TakesOver int    `json:"takes_over"` // the format that it was asked about
	Version   string `json:"version"`
}

// ask asks the installed program whether it can go on with the arguments of this one, and returns its version.
func (s *successor) ask(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, fmt.Errorf("it did not answer in %s", answerLimit))
	defer cancel()
	cmd := exec.CommandContext(ctx, s.path)
	cmd.Args = append(slices.Clone(s.args), "--can-take-over="+strconv.Itoa(daemon.HandoverFormat))
	cmd.WaitDelay = time.Second // for what it has started
	out, err := cmd.Output()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if failed, is := errors.AsType[*exec.ExitError](err); is {
		said, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n")
		err = fmt.Errorf("%w: %q", err, said)
	}
	if err != nil {
		return "", fmt.Errorf("the program installed at %s cannot go on: %w", s.path, err)
	}
	var answer takeOverAnswer
	if json.Unmarshal(out, &answer) != nil || answer.TakesOver != daemon.HandoverFormat || answer.Version == "" {
		return "", fmt.Errorf("the program installed at %s is not a toold that can go on", s.path)
	}
	return answer.Version, nil
}

// begin has the installed program go on in this process. It returns only if that fails, and then nothing has changed.
func (s *successor) begin(handover *daemon.Handover) error {
	state, err := json.Marshal(handover)
	if err != nil {
		return err
	}
	if len(state) > mostHanded {
		return fmt.Errorf("what would be passed on has %d bytes, and at most %d are taken over", len(state), mostHanded)
	}
	memory, err := sealedMemory(state)
	if err != nil {
		return err
	}
	defer memory.Close()
	keep := func(flag int) error {
		_, err := unix.FcntlInt(memory.Fd(), unix.F_SETFD, flag)
		return errors.Join(err, handover.Passed.Keep(flag == 0))
	}
	if err = keep(0); err == nil {
		env := slices.Concat(os.Environ(), s.env, []string{takeOverVariable + "=" + strconv.Itoa(int(memory.Fd()))})
		err = &os.PathError{Op: "exec", Path: s.path, Err: syscall.Exec(s.path, s.args, env)}
	}
	return errors.Join(err, keep(unix.FD_CLOEXEC))
}

// sealedMemory returns memory with that content, which does not change any more. The descriptor is all that leads there.
func sealedMemory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("toold", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "handover")
	if _, err = file.Write(content); err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// takeOver returns what the program before in this process has left to go on with; nil: there was none. What this process starts does
// not learn of it.
func takeOver() (*daemon.Handover, error) {
	named, is := os.LookupEnv(takeOverVariable)
	if !is {
		return nil, nil
	}
	_ = os.Unsetenv(takeOverVariable)
	fd, err := strconv.Atoi(named)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%s=%q does not name a descriptor", takeOverVariable, named)
	}
	memory := os.NewFile(uintptr(fd), "handover")
	defer memory.Close()
	if set, err := unix.FcntlInt(memory.Fd(), unix.F_GET_SEALS, 0); err != nil || set&seals != seals { // the kernel may have added others
		return nil, fmt.Errorf("what %s names is not sealed memory", takeOverVariable)
	}
	state, err := io.ReadAll(io.NewSectionReader(memory, 0, mostHanded))
	if err != nil {
		return nil, err
	}
	handover := &daemon.Handover{}
	decoder := json.NewDecoder(bytes.NewReader(state))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(handover); err != nil {
		return nil, fmt.Errorf("what the program before has left cannot be read: %w", err)
	}
	return handover, handover.Passed.Keep(false)
}
