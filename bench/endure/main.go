// Command endure maltreats a daemon and holds what its clients see against what toold promises (bench/ledger): crash
// kills it over and over, flap kills a client, soak does everything at once for long, memory has it hold much, builds has many sessions build at once. It speaks to
// the daemon as any client does; soak alone serves it itself, so that it can look for goroutines at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
)

const usage = `usage: endure crash [-kills 1000] [-seed 1] [-from 0] [-toold .bin/toold]
       endure flap  [-for 1m] [-every 1s] [-toold .bin/toold]
       endure soak  [-for 10m] [-clients 8] [-seed 1]
       endure builds [-sessions 500] [-for 3m] [-toold .bin/toold]
       endure memory [-editors 10] [-holders 255] [-spillers 9] [-toold .bin/toold]`

func main() {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "endure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	toold := flags.String("toold", ".bin/toold", "the daemon's binary")
	seed := flags.Uint64("seed", 1, "what chance is drawn from")
	var act func() error
	switch args[0] {
	case "crash":
		kills := flags.Int("kills", 1000, "how often the daemon is killed")
		from := flags.Int("from", 0, "number of the first kill; with -kills 1 it repeats one")
		act = func() error { return crash(ctx, *toold, *seed, *from, *kills, os.Stdout) }
	case "flap":
		span := flags.Duration("for", time.Minute, "how long")
		every := flags.Duration("every", time.Second, "how often the client is killed")
		act = func() error { return flap(ctx, *toold, *span, *every, os.Stdout) }
	case "soak":
		span := flags.Duration("for", 10*time.Minute, "how long")
		clients := flags.Int("clients", 8, "how many at once")
		act = func() error { return soak(ctx, *span, *clients, *seed, os.Stdout) }
	case "memory":
		b := whole
		flags.IntVar(&b.editors, "editors", b.editors, "sessions with 4 buffers each")
		flags.IntVar(&b.holders, "holders", b.holders, "sessions with large options")
		flags.IntVar(&b.optionBytes, "option-bytes", b.optionBytes, "bytes of the settings of each of these")
		flags.IntVar(&b.envBytes, "env-bytes", b.envBytes, "bytes of the environment of each")
		flags.IntVar(&b.spillers, "spillers", b.spillers, "sessions with long outputs")
		flags.Int64Var(&b.peak, "peak", b.peak, "KiB that the daemon may take")
		flags.Int64Var(&b.idle, "idle", b.idle, "KiB that the daemon may take when they have left")
		act = func() error { return memory(ctx, *toold, b, os.Stdout) }
	case "builds":
		r := wholeRush
		flags.IntVar(&r.sessions, "sessions", r.sessions, "how many build")
		flags.IntVar(&r.places, "places", r.places, "how many calls that start programs run at once, beside quick ones")
		flags.DurationVar(&r.span, "for", r.span, "how long they do")
		flags.DurationVar(&r.cpu, "cpu", r.cpu, "time of a processor that a build takes")
		flags.IntVar(&r.megabytes, "megabytes", r.megabytes, "memory that a build takes")
		flags.StringVar(&r.limits, "limits", r.limits, "more keys of limits, as in settings, with a comma in front")
		act = func() error { return builds(ctx, *toold, r, os.Stdout) }
	case "compile": // what builds does
		return compile(args[1:])
	case "flapping": // the client that flap kills
		return flapping(ctx, args[1:])
	case "serve": // the daemon that soak watches
		return serve(args[1:])
	default:
		return errors.New(usage)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	return act()
}
