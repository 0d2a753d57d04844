//go:build linux

// The probe tries every door of a sandbox and says which are open. It is called with a scene (see package scene) as JSON:
//
//	probe SCENE        all doors, each in a process of its own; one line of JSON for each
//	probe list SCENE   the doors, untried
//	probe door NAME SCENE
//	probe beside DIR NAME OUT  be a process of another call, until it is killed
//	probe victim       be the process outside that the doors are tried on, until stdin ends
//	probe who          print the effective user and capabilities, for the doors that start a changed copy
//
// With all doors SCENE may be - for stdin. Whatever is open, nothing but the scene's own files and processes changes: what would harm is
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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// patience is how long one door may take; the bombs are the slowest.
const patience = 40 * time.Second

// A door is one way out, and how it is tried.
type door struct {
	scene.Result
	try func() error
}

// A probe has all doors of a scene, and what one of them is tried with.
type probe struct {
	*scene.Scene
	doors  []door
	name   string // of the door that is tried; empty: none
	say    []byte // what it sends, by which the suite recognises it
	detail string // what the attempt did

	out   string // the door's directory outside
	file  string // a file there
	dir   string // an empty directory there
	fresh string // a name there that does not exist

	own      string // the door's directory inside
	ownFile  string // a file there
	planted  string // a hard link to file
	way      string // a symbolic link to out
	dangling string // a symbolic link to fresh
	swapped  string // an empty directory
}

// newProbe lists the doors in the order in which they are tried: those that may take the others with them come last.
func newProbe(plain []byte, name string) *probe {
	s := new(scene.Scene)
	if err := json.Unmarshal(plain, s); err != nil {
		check(fmt.Errorf("the scene is not JSON: %w", err))
	}
	slug := scene.Slug(name)
	out, own := filepath.Join(s.Outside, slug), filepath.Join(s.Root, slug)
	p := &probe{
		Scene: s, name: name, say: []byte(slug + "\n"), detail: "done",
		out: out, file: out + "/victim", dir: out + "/dir", fresh: out + "/new",
		own: own, ownFile: own + "/own", planted: own + "/planted", way: own + "/way", dangling: own + "/dangling", swapped: own + "/swapped",
	}
	for _, add := range []func(*probe){
		works, files, metadata, oldTimes, ways, protected, gitFiles, hidden, procfs, processes, signals, sockets, socketFamilies, besides,
		caches, shownFiles, openedDirectories, ipc, mounts, namespaces, kernel, foreign, rings, system, devices, privileges, bombs,
	} {
		add(p)
	}
	return p
}

// add returns a function that adds doors of a kind.
func (p *probe) add(kind scene.Result) func(name string, try func() error) {
	return func(name string, try func() error) {
		kind.Door = name
		p.doors = append(p.doors, door{kind, try})
	}
}

// inside is add for a group of doors of which only the probe itself can see whether they are open.
func (p *probe) inside(group string) func(name string, try func() error) {
	return p.add(scene.Result{Group: group})
}

// outside is add for a group of doors whose effect the suite sees.
func (p *probe) outside(group string) func(name string, try func() error) {
	return p.add(scene.Result{Group: group, Outside: true})
}

// did records what the attempt did, if err is nil, and returns err.
func (p *probe) did(err error, format string, args ...any) error {
	p.detail = fmt.Sprintf(format, args...)
	return err
}

// then adds to what the attempt did what went wrong at its end.
func (p *probe) then(last error) {
	if last != nil {
		p.detail += fmt.Sprintf(", then %v", last)
	}
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
	case len(args) == 2 && args[0] == "list":
		for _, d := range newProbe([]byte(args[1]), "").doors {
			show(d.Result)
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
		all(args[0], args[1:])
		return nil
	}
	return errors.New("usage: probe SCENE [DOOR], probe list SCENE, or probe door NAME SCENE; SCENE is JSON or, with all doors, - for stdin")
}

// all tries each door, or the ones named.
func all(text string, named []string) {
	plain := []byte(text)
	if text == "-" {
		plain = must(io.ReadAll(os.Stdin))
	}
	keepThreads()
	for _, d := range newProbe(plain, "").doors {
		if len(named) == 0 || slices.Contains(named, d.Door) {
			show(apart(d.Result, string(plain)))
		}
	}
}

// keepThreads has this process own more threads than it will ever need at once. While a door takes all processes that there may
// be, no thread can be made, and without one that it needs a Go program ends.
func keepThreads() {
	const enough = 32
	var there, done sync.WaitGroup
	there.Add(enough)
	for range enough {
		done.Go(func() {
			runtime.LockOSThread() // until all have one; then it is Go's again, which keeps it
			defer runtime.UnlockOSThread()
			there.Done()
			there.Wait()
		})
	}
	done.Wait()
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
func (d door) attempt() (err error) {
	defer caught(&err)
	return d.try()
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
func apart(shut scene.Result, plain string) scene.Result {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, complaint bytes.Buffer
	program, err := os.Executable()
	if err != nil {
		program = "/proc/self/exe"
	}
	c := exec.CommandContext(ctx, program, "door", shut.Door, plain)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, &out, &complaint
	c.WaitDelay = time.Second
	err = c.Run()
	var r scene.Result
	if json.Unmarshal(out.Bytes(), &r) == nil && r.Door == shut.Door {
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
	p := newProbe(plain, name)
	i := slices.IndexFunc(p.doors, func(d door) bool { return d.Door == name })
	if i < 0 {
		return fmt.Errorf("there is no door %q", name)
	}
	_ = os.Chdir(p.own)
	d := p.doors[i]
	err := d.attempt()
	if d.Open, d.Detail = err == nil, p.detail; err != nil {
		d.Detail = explain(err)
	}
	show(d.Result)
	return nil
}

// explain puts an errno's name before its words.
func explain(err error) string {
	line := strings.ReplaceAll(err.Error(), "\n", "; ")
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return unix.ErrnoName(no) + ": " + line
	}
	return line
}

// errno is nil for none.
func errno(no syscall.Errno) error {
	if no == 0 {
		return nil
	}
	return no
}

// call makes a system call by its number. An argument is a number, a text, or the address of something.
func call(trap uintptr, args ...any) error {
	_, err := result(trap, args...)
	return err
}

// result is call with what the system call returns.
func result(trap uintptr, args ...any) (uintptr, error) {
	var a [6]uintptr
	for i, arg := range args {
		switch v := arg.(type) {
		case int:
			a[i] = uintptr(v)
		case uintptr:
			a[i] = v
		case string:
			a[i] = text(v)
		case unsafe.Pointer:
			a[i] = address(v)
		default:
			panic(fmt.Sprintf("BUG: a %T is no argument", arg))
		}
	}
	r, _, no := unix.Syscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, errno(no)
}

// text returns the address of a text as the kernel wants it.
func text(s string) uintptr { return address(unsafe.Pointer(must(unix.BytePtrFromString(s)))) }

// address returns the address of what p points to, and keeps that.
func address(p unsafe.Pointer) uintptr {
	kept = append(kept, p)
	return uintptr(p)
}

// kept holds what the kernel is told the address of. Go's heap does not move.
var kept []unsafe.Pointer

// cwd stands for the working directory where a call takes a directory.
const cwd = unix.AT_FDCWD

// open opens a file, or ends the attempt.
func open(path string, flags int) int { return must(unix.Open(path, flags|unix.O_CLOEXEC, 0)) }

// scribble opens with flags and, if that goes, writes one byte.
func scribble(path string, flags int) error { return writeTo(path, flags, "!") }

// create makes a file that does not exist, with one byte.
func create(path string) error { return scribble(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) }

func writeTo(path string, flags int, text string) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return write(fd, text)
}

func write(fd int, text string) error {
	_, err := unix.Write(fd, []byte(text))
	return err
}

// self is a path to what a descriptor of this process is of.
func self(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// proc is a file of a process in /proc.
func proc(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// reached judges a call whose arguments the kernel refuses, if not the caller: a refusal that is about them means that the caller
// was not refused.
func (p *probe) reached(err error) error {
	if err == nil || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) {
		return err
	}
	return p.did(nil, "the kernel looked at the arguments: %v", err)
}
