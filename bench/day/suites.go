// The test suites of real projects, in plain bash and through the daemon: what the daemon adds to a command that takes
// seconds and starts many processes.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// suites are the commands by the name of the folder with the checkout, with what they need already in it (vendor,
// node_modules, .venv). hiredis is built, since most of its tests need a server. Three tests of cobra want a file that they may
// not write, which root may.
var suites = []struct{ project, command string }{
	{"express", "npx mocha --require test/support/env --reporter dot --check-leaks test/ test/acceptance/"},
	{"cobra", "go test -count=1 -skip FailGen ./..."},
	{"click", ".venv/bin/python -m pytest -q -p no:cacheprovider"},
	{"hiredis", "make -B -j2 static hiredis-test"},
}

// warmRuns is how often a suite is run in a root after the first two.
const warmRuns = 3

// measureSuites runs each suite in rounds fresh roots: once, a second time, and then warm. Both sides take turns, and the
// first run of a root counts for neither.
func measureSuites(ctx context.Context, setting Setting, rounds int) error {
	fmt.Println("| suite | second call of a root, median | warm, median | range | plain bash | through the daemon |\n|---|---|---|---|---|---|")
	for _, suite := range suites {
		if _, err := os.Stat(filepath.Join(setting.Projects, suite.project)); err != nil {
			fmt.Printf("| %s | left out: %v | | | | |\n", suite.project, err)
			continue
		}
		var t timings
		for range rounds {
			if err := t.root(ctx, setting, Script{Name: suite.project}, suite.command); err != nil {
				return fmt.Errorf("%s: %w", suite.project, err)
			}
		}
		fmt.Printf("| %s | %.2f x | %.2f x | %.2f to %.2f | %.2f s | %.2f s |\n", suite.project, median(t.second), median(t.warm),
			slices.Min(t.warm), slices.Max(t.warm), median(t.plain), median(t.daemon))
	}
	return nil
}

// timings are ratios, and the seconds of the warm runs.
type timings struct{ second, warm, plain, daemon []float64 }

// root makes a home for each side, and runs the command there.
func (t *timings) root(ctx context.Context, setting Setting, script Script, command string) (err error) {
	dir, err := os.MkdirTemp("/var/tmp", "suites")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	plain, err := newSide(ctx, filepath.Join(dir, "plain"), script, setting)
	if err != nil {
		return err
	}
	mine, err := newSide(ctx, filepath.Join(dir, "mined"), script, setting)
	if err != nil {
		return err
	}
	c, err := connect(ctx, mine, setting)
	if err != nil {
		return err
	}
	defer c.close()
	for n := range 2 + warmRuns {
		a, err := plain.inBash(ctx, command)
		if err != nil {
			return err
		}
		b, err := c.run(command)
		if err != nil {
			return err
		}
		if a.exit != b.exit {
			return fmt.Errorf("plain bash ended with %d and the daemon's with %d:\n%s\n%s", a.exit, b.exit, a.output, b.text)
		}
		ratio := b.took.Seconds() / a.took.Seconds()
		switch n {
		case 0:
		case 1:
			t.second = append(t.second, ratio)
		default:
			t.warm, t.plain, t.daemon = append(t.warm, ratio), append(t.plain, a.took.Seconds()), append(t.daemon, b.took.Seconds())
		}
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
