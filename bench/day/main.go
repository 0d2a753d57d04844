// Command day runs the commands of a day's work twice: in plain bash, and through a daemon, in two identical homes. It
// compares output, exit code and files after each command, and prints what differs, what was asked, and the time that
// both took.
//
// The corpus is in corpus; [ReadCorpus] describes its format. Small projects to run it on are in projects; -projects adds
// checkouts of real ones.
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
)

func main() {
	toold := flag.String("toold", ".bin/toold", "the daemon's binary")
	source := flag.String("source", "bench/day", "the folder with corpus, projects and home")
	projects := flag.String("projects", "", "a folder with checkouts of projects, which a script of the same name in corpus/real is run in")
	only := flag.String("only", ".", "run only scripts whose name matches this regular expression")
	mode := flag.String("mode", "bypass", "bypass: nothing is asked; default: questions are counted and answered with yes")
	verbose := flag.Bool("v", false, "print each command as it runs")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := compare(ctx, *toold, *source, *projects, *only, *mode, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "day:", err)
		stop()
		os.Exit(1)
	}
}

func compare(ctx context.Context, toold, source, projects, only, mode string, verbose bool) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if mode != "bypass" && mode != "default" {
		return fmt.Errorf("-mode %s: give bypass or default", mode)
	}
	if toold, err = filepath.Abs(toold); err != nil {
		return err
	}
	scripts, err := ReadCorpus(filepath.Join(source, "corpus"))
	if err != nil {
		return err
	}
	if projects != "" {
		real, err := ReadCorpus(filepath.Join(source, "corpus", "real"))
		if err != nil {
			return err
		}
		scripts = append(scripts, real...)
	}
	var total Tally
	for _, s := range scripts {
		if !chosen.MatchString(s.Name) || s.Missing() != "" {
			continue
		}
		tally, err := s.Run(ctx, Setting{Toold: toold, Source: source, Projects: projects, Mode: mode, Verbose: verbose})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		for _, d := range tally.Differences {
			fmt.Printf("%s\n\n", d)
		}
		fmt.Printf("%s: %v\n\n", s.Name, tally)
		total.Add(tally)
	}
	fmt.Printf("all, mode %s: %v\n", mode, total)
	if total.Commands == 0 {
		return errors.New("no script was run")
	}
	return nil
}
