// Command peer measures toold beside what people have today: npm's filesystem server for MCP, gemini-cli-core's tools and
// Codex's exec-server. Each is a process that is asked over its own protocol, and stays. What is not installed is left out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
)

func main() {
	toold := flag.String("toold", ".bin/toold", "the daemon's binary")
	npm := flag.String("npm", "bench/peer/npm", "the folder in which npm ci has installed the others")
	rounds := flag.Int("rounds", 15, "rounds of each comparison")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, *toold, *npm, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		stop()
		os.Exit(1)
	}
}

// A bench is what the comparisons need.
type bench struct {
	toold, npm, root string
	daemon           *wire.Server
	others           []*process // to be ended
}

func measure(ctx context.Context, toold, npm string, rounds int) (err error) {
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{toold: toold, root: filepath.Join(dir, "root")}
	if b.npm, err = filepath.Abs(npm); err != nil {
		return err
	}
	if err := lay(b.root); err != nil {
		return err
	}
	if b.daemon, err = wire.StartDaemon(ctx, toold, dir); err != nil {
		return err
	}
	defer b.daemon.Stop()
	defer func() {
		for _, p := range b.others {
			p.end()
		}
	}()
	var list []ratio.Comparison
	for _, add := range []func(context.Context) ([]ratio.Comparison, error){b.filesystem, b.gemini, b.codex} {
		some, err := add(ctx)
		if err != nil {
			fmt.Println(err) // the others are still measured
		}
		list = append(list, some...)
	}
	fmt.Println("\n| toold / the other | ratio, median | p10 to p90 | the other | toold | the other moved |\n|---|---|---|---|---|---|")
	for _, c := range list {
		row, err := c.Run(ctx, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		fmt.Println(row)
	}
	return nil
}

// The workspace: two files that are read, a folder of listed files, and a tree of treeFolders times treeFiles files in
// which some have the name that is searched for, and some the word.
const (
	listed      = 100
	treeFolders = 50
	treeFiles   = 40
	word        = "quicksilver"
)

func lay(root string) error {
	files := map[string]string{"4k.txt": lines(4 << 10), "64k.txt": lines(64 << 10)}
	for n := range listed {
		files[fmt.Sprintf("list/file%03d.txt", n)] = "x\n"
	}
	for folder := range treeFolders {
		for n := range treeFiles {
			files[fmt.Sprintf("tree/d%02d/file%02d.go", folder, n)] = lines(2 << 10)
		}
		files[fmt.Sprintf("tree/d%02d/needle.go", folder)] = lines(2<<10) + word + "\n"
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// lines returns text of that many bytes.
func lines(size int) string {
	const line = "the quick brown fox jumps over the lazy dog and on\n"
	return strings.Repeat(line, size/len(line)+1)[:size-1] + "\n"
}
