// Command bench measures toold against what it is made of, as ratios: in one run, interleaved, with the control taken
// once more before and after. It speaks to the daemon as any client does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"

	"github.com/toold/toold/bench/wire"
	"github.com/toold/toold/tools/exec/sandbox"
)

func main() {
	if sandbox.WatcherMain(os.Args) {
		return
	}
	echo := flag.String("echo", "", "serve bare gRPC on this socket instead of measuring; the program starts itself so")
	toold := flag.String("toold", ".bin/toold", "the daemon's binary")
	spinning := flag.Bool("spin", false, "keep a core busy until standard input ends; the program starts itself so")
	confined := flag.Bool("sandbox", false, "measure what starting a process costs under each confinement instead, without a daemon")
	growing := flag.Bool("growth", false, "measure what a call costs as calls, sessions, rules, files and records grow instead")
	counting := flag.Bool("instructions", false, "count the processor's instructions of calls instead, by perf")
	only := flag.String("only", ".", "measure only what matches this regular expression")
	rounds := flag.Int("rounds", 15, "rounds of each comparison")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := regexp.Compile(*only)
	switch {
	case err != nil:
		err = fmt.Errorf("-only: %w", err)
	case *echo != "":
		err = serveEcho(ctx, *echo)
	case *growing:
		err = measureGrowth(ctx, *toold, chosen.MatchString, *rounds)
	case *counting:
		err = measureInstructions(ctx, *toold, chosen.MatchString)
	case *spinning:
		spin()
	case *confined:
		err = measureConfined(ctx, chosen.MatchString, *rounds)
	default:
		err = measure(ctx, *toold, chosen, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// measure starts a daemon and a bare server, measures, prints, and leaves nothing behind.
func measure(ctx context.Context, toold string, chosen *regexp.Regexp, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bare, err := startEcho(ctx, filepath.Join(dir, "echo.sock"))
	if err != nil {
		return err
	}
	defer bare.Stop()
	daemon, err := wire.StartDaemon(ctx, toold, dir)
	if err != nil {
		return err
	}
	defer daemon.Stop()

	fmt.Println("| what | ratio, median | p10 to p90 | control | toold | control moved |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, c := range comparisons(daemon, bare, dir) {
		if !chosen.MatchString(c.Name) {
			continue
		}
		report, err := c.Run(ctx, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		fmt.Println(report)
	}
	if chosen.MatchString("phase") {
		err = measurePhases(ctx, toold, dir)
	}
	if err == nil && chosen.MatchString("idle session") {
		err = measureSessions(ctx, toold)
	}
	return err
}
