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
	var s Setting
	flag.StringVar(&s.Toold, "toold", ".bin/toold", "the daemon's binary")
	flag.StringVar(&s.Source, "source", "bench/day", "the folder with corpus, projects and home")
	flag.StringVar(&s.Projects, "projects", "", "a folder with checkouts of projects, which a script of the same name in corpus/real is run in")
	only := flag.String("only", ".", "run only scripts whose name matches this regular expression")
	flag.StringVar(&s.Mode, "mode", "bypass", "bypass: nothing is asked; default: questions are counted and answered with yes")
	rounds := flag.Int("suites", 0, "measure the test suites of -projects instead, in so many fresh roots each")
	flag.BoolVar(&s.Verbose, "v", false, "print each command as it runs")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *rounds > 0 {
		if s.Toold, err = filepath.Abs(s.Toold); err == nil {
			err = measureSuites(ctx, s, *rounds)
		}
	} else {
		err = compare(ctx, s, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "day:", err)
		stop()
		os.Exit(1)
	}
}

func compare(ctx context.Context, setting Setting, only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if setting.Mode != "bypass" && setting.Mode != "default" {
		return fmt.Errorf("-mode %s: give bypass or default", setting.Mode)
	}
	if setting.Toold, err = filepath.Abs(setting.Toold); err != nil {
		return err
	}
	scripts, err := ReadCorpus(filepath.Join(setting.Source, "corpus"))
	if err == nil && setting.Projects != "" {
		var real []Script
		real, err = ReadCorpus(filepath.Join(setting.Source, "corpus", "real"))
		scripts = append(scripts, real...)
	}
	if err != nil {
		return err
	}
	var total Tally
	for _, s := range scripts {
		if !chosen.MatchString(s.Name) || s.Missing() != "" {
			continue
		}
		tally, err := s.Run(ctx, setting)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		for _, d := range tally.Differences {
			fmt.Printf("%s\n\n", d)
		}
		fmt.Printf("%s: %v\n\n", s.Name, tally)
		total.Add(tally)
	}
	fmt.Printf("all, mode %s: %v\n", setting.Mode, total)
	if total.Commands == 0 {
		return errors.New("no script was run")
	}
	return nil
}
