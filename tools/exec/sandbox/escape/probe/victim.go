//go:build linux

// The process outside: it holds the secret in its memory, in its environment and in a file without a name, has the outside
// directory open and as its own, and tells on stdout which signals it got. It ends with its stdin.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// knocking is how often the victim tries the name that a door may have bound.
const knocking = 20 * time.Millisecond

func victim() error {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	secret := []byte(os.Getenv("TOOLD_VICTIM_SECRET"))
	memory := must(unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))
	copy(memory, secret)
	dir := must(unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
	file := must(unix.MemfdCreate("secret", unix.MFD_CLOEXEC))
	must(unix.Write(file, secret))
	came := make(chan os.Signal, 64)
	for n := 34; n <= 64; n++ {
		signal.Notify(came, syscall.Signal(n))
	}
	environ := must(os.ReadFile("/proc/self/environ"))
	me := scene.Process{PID: os.Getpid(), EnvironSum: scene.Sum(environ), Address: uintptr(unsafe.Pointer(&memory[0])), Directory: dir, Secret: file}
	check(json.NewEncoder(os.Stdout).Encode(me))
	watch(came)
	if memory[1024] != 0 {
		fmt.Fprintln(os.Stdout, "memory", string(memory[1024:1035]))
	}
	return nil
}

// watch reports signals and knocks, until stdin ends.
func watch(came <-chan os.Signal) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	tick := time.NewTicker(knocking)
	defer tick.Stop()
	for {
		select {
		case got := <-came:
			if n, ok := got.(syscall.Signal); ok {
				fmt.Fprintln(os.Stdout, "signal", int(n))
			}
		case <-tick.C:
			if c, err := net.Dial("unix", "@"+os.Getenv("TOOLD_VICTIM_BOUND")); err == nil {
				_ = c.Close()
			}
		case <-over:
			return
		}
	}
}
