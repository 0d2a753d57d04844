// A turn of mixed calls in the two orders that a session can have.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// orderComparison runs a turn of ten calls, of which half write a file of their own, in dependency order, against the
// same turn in batches.
func orderComparison(daemon *wire.Server, dir string) ratio.Comparison {
	return ratio.Comparison{
		Name:    "a turn of 10 mixed calls in DEPENDENCY order / in BATCHED order",
		Control: ordering(daemon, filepath.Join(dir, "batched"), tooldv1.Ordering_ORDERING_BATCHED),
		Toold:   ordering(daemon, filepath.Join(dir, "dependency"), tooldv1.Ordering_ORDERING_DEPENDENCY),
	}
}

// ordering runs the turn a number of times, and returns how long one took.
func ordering(s *wire.Server, root string, order tooldv1.Ordering) ratio.Work {
	const turns = 20
	var t *mixing
	return func(ctx context.Context) (time.Duration, error) {
		if t == nil {
			if err := mixedFiles(root); err != nil {
				return 0, err
			}
			mode := tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS
			stream, err := wire.Attach(ctx, s.Conn, &tooldv1.Attach{
				Roots: []string{root}, Client: &tooldv1.ClientInfo{Name: "bench"},
				Options: &tooldv1.Options{PermissionMode: &mode, Ordering: &order},
			})
			if err != nil {
				return 0, err
			}
			t = &mixing{Talk: &wire.Talk{Stream: stream}}
		}
		start := time.Now()
		for range turns {
			if err := t.mixed(root); err != nil {
				return 0, err
			}
		}
		return time.Since(start) / turns, nil
	}
}

// A mixing runs turns of mixed calls.
type mixing struct {
	*wire.Talk
	turn int // how many there were
}

// mixed runs one turn, and waits for its results.
func (t *mixing) mixed(root string) error {
	t.turn++
	turn := strconv.Itoa(t.turn)
	for i := range 5 {
		file := filepath.Join(root, "written", strconv.Itoa(i))
		if err := t.Use(turn, turn+".w"+strconv.Itoa(i), "Write", fmt.Sprintf(`{"file_path":%q,"content":"%s\n"}`, file, turn)); err != nil {
			return err
		}
		call := [][2]string{
			{"Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(root, "read", "0"))},
			{"Grep", fmt.Sprintf(`{"pattern":"line 7$","path":%q}`, filepath.Join(root, "read"))},
			{"Glob", fmt.Sprintf(`{"pattern":"*","path":%q}`, filepath.Join(root, "read"))},
			{"Read", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(root, "read", "1"))},
			{"Bash", `{"command":"cat read/2"}`},
		}[i]
		if err := t.Use(turn, turn+".r"+strconv.Itoa(i), call[0], call[1]); err != nil {
			return err
		}
	}
	for range 10 {
		if _, err := t.Result(); err != nil {
			return err
		}
	}
	return nil
}

// mixedFiles makes what the turn reads.
func mixedFiles(root string) error {
	for _, name := range []string{"read", "written"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			return err
		}
	}
	for i := range 10 {
		var text []byte
		for n := range 1000 {
			text = fmt.Appendf(text, "line %d\n", n)
		}
		if err := os.WriteFile(filepath.Join(root, "read", strconv.Itoa(i)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
