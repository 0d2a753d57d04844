//go:build linux

// The probe tries every door of a sandbox and says which are open. It is called with a scene (see package scene) as JSON:
//
//	probe SCENE        all doors, each in a process of its own; one line of JSON for each
//	probe list         the doors, untried
//	probe door NAME SCENE
//	probe beside DIR NAME OUT  be a process of another call, until it is killed
//	probe victim       be the process outside that the doors are tried on, until stdin ends
//	probe who          print the effective user and capabilities, for the doors that start a changed copy
//
// SCENE may be - for stdin. Whatever is open, nothing but the scene's own files and processes changes: what would harm is
// asked with arguments that the kernel refuses after it has judged the caller. (A kernel that loads modules on demand may
// load one for a socket.) The probe does not know what confines it.
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
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// patience is how long one door may take; the bombs are the slowest.
const patience = 40 * time.Second

// A door is one way out. try gives what it did, or why it could not; seen says that the suite sees its effect from outside.
type door struct {
	name, group string
	seen        bool
	try         func(*scene.Scene) (string, error)
}

// doors are in the order in which they are tried: those that may take the others with them come last.
func doors() []door {
	return slices.Concat(works(), files(), metadata(), ways(), protected(), hidden(), procfs(), processes(), signals(), sockets(), besides(), caches(), shownFiles(), openedDirectories(),
		ipc(), mounts(), namespaces(), kernel(), foreign(), rings(), system(), devices(), privileges(), bombs())
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	defer caught(&err)
	for n := 34; n <= 64; n++ { // a number that means the victim outside may be in use in here
		signal.Ignore(syscall.Signal(n))
	}
	switch {
	case len(args) == 1 && args[0] == "list":
		for _, d := range doors() {
			show(scene.Result{Door: d.name, Group: d.group, Outside: d.seen})
		}
		return nil
	case len(args) == 1 && args[0] == "victim":
		return victim()
	case len(args) == 4 && args[0] == "beside":
		return beside(args[1], args[2], args[3])
	case len(args) == 1 && args[0] == "who":
		return who()
	case len(args) == 3 && args[0] == "door":
		return one(args[1], []byte(args[2]))
	case len(args) == 1 || len(args) == 2 && args[0] != "door":
		return all(args[0], args[1:])
	}
	return errors.New("usage: probe SCENE [DOOR], probe list, or probe door NAME SCENE; SCENE is JSON or - for stdin")
}

// all tries each door, or the ones named.
func all(text string, named []string) error {
	plain := []byte(text)
	if text == "-" {
		var err error
		if plain, err = io.ReadAll(os.Stdin); err != nil {
			return err
		}
	}
	if _, err := scene.Parse(plain, ""); err != nil {
		return fmt.Errorf("the scene is not JSON: %w", err)
	}
	for _, d := range doors() {
		if len(named) == 0 || slices.Contains(named, d.name) {
			show(apart(d, string(plain)))
		}
	}
	return nil
}

// A refusal is the panic by which must and check end an attempt.
type refusal struct{ error }

// must returns v, or ends the attempt with err.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// check ends the attempt with err, if there is one.
func check(err error) {
	if err != nil {
		panic(refusal{err})
	}
}

// attempt tries the door. What must or check end it with is its error.
func (d door) attempt(s *scene.Scene) (detail string, err error) {
	defer caught(&err)
	return d.try(s)
}

// caught makes a refusal the error of the function that defers it.
func caught(err *error) {
	if r := recover(); r != nil {
		refused, ok := r.(refusal)
		if !ok {
			panic(r)
		}
		*err = refused.error
	}
}

func show(r scene.Result) {
	line, err := json.Marshal(r)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// apart tries a door in a process of its own, which may be killed for it.
func apart(d door, plain string) scene.Result {
	shut := scene.Result{Door: d.name, Group: d.group, Outside: d.seen}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, complaint bytes.Buffer
	program, err := os.Executable()
	if err != nil {
		program = "/proc/self/exe"
	}
	c := exec.CommandContext(ctx, program, "door", d.name, plain)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, &out, &complaint
	c.WaitDelay = time.Second
	err = c.Run()
	var r scene.Result
	if json.Unmarshal(out.Bytes(), &r) == nil && r.Door == d.name {
		return r
	}
	shut.Detail = fmt.Sprintf("ended without a word: %v", err)
	if ctx.Err() != nil {
		shut.Detail = fmt.Sprintf("not done after %v", patience)
	} else if first, _, _ := bytes.Cut(complaint.Bytes(), []byte("\n")); len(first) > 0 {
		shut.Detail += ": " + string(first)
	}
	return shut
}

func one(name string, plain []byte) error {
	s, err := scene.Parse(plain, name)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(doors(), func(d door) bool { return d.name == name })
	if i < 0 {
		return fmt.Errorf("there is no door %q", name)
	}
	d := doors()[i]
	_ = os.Chdir(s.Own)
	r := scene.Result{Door: d.name, Group: d.group, Outside: d.seen}
	detail, err := d.attempt(s)
	if r.Open, r.Detail = err == nil, detail; err != nil {
		r.Detail = explain(err)
	}
	show(r)
	return nil
}

// explain puts an errno's name before its words.
func explain(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return unix.ErrnoName(no) + ": " + oneLine(err)
	}
	return oneLine(err)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// errno is nil for none.
func errno(no syscall.Errno) error {
	if no == 0 {
		return nil
	}
	return no
}

// call makes a system call by its number.
func call(trap uintptr, args ...uintptr) error {
	_, err := result(trap, args...)
	return err
}

// result is call with what the system call returns.
func result(trap uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, no := unix.Syscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, errno(no)
}

// reached judges a call whose arguments the kernel refuses, if not the caller: a refusal that is about them means that the caller
// was not refused.
func reached(err error) (string, error) {
	if err == nil {
		return "done", nil
	}
	for _, shut := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS} {
		if errors.Is(err, shut) {
			return "", err
		}
	}
	return fmt.Sprintf("the kernel looked at the arguments: %v", err), nil
}
