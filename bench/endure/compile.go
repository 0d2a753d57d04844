// What a build does to a machine: it keeps a processor busy, and fills memory.

package main

import (
	"crypto/sha256"
	"flag"
	"syscall"
	"time"
)

// compile takes as much of a processor, and of memory, as its arguments name.
func compile(args []string) error {
	flags := flag.NewFlagSet("compile", flag.ContinueOnError)
	cpu := flags.Duration("cpu", time.Second, "time of a processor")
	megabytes := flags.Int("megabytes", 100, "of memory, at least 1")
	if err := flags.Parse(args); err != nil {
		return err
	}
	memory := make([]byte, *megabytes<<20)
	for page := 0; page < len(memory); page += 4096 { // so that it is there
		memory[page] = 1
	}
	for {
		memory[0] = sha256.Sum256(memory[:min(len(memory), 1<<20)])[0]
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return err
		}
		if time.Duration(used.Utime.Nano()+used.Stime.Nano()) >= *cpu {
			return nil
		}
	}
}
