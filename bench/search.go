// Grep and Glob against rg, in the sources of Go's own tree. They must find the same.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/build"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A searching is one search and what rg does for it.
type searching struct {
	name string
	rg   []string
	tool string
	in   map[string]any
}

// searches are what is compared. Every Grep but the first has earlier searches to remember.
var searches = []searching{
	{"Grep, rare pattern, lines", []string{"-n", `func New[A-Z]\w+Reader`}, "Grep", map[string]any{"pattern": `func New[A-Z]\w+Reader`, "output_mode": "content"}},
	{"Grep, rare word, files", []string{"-l", "WithCancelCause"}, "Grep", map[string]any{"pattern": "WithCancelCause"}},
	{
		"Grep, alternation, files",
		[]string{"-l", "ErrUnexpectedEOF|ErrShortWrite|ErrClosedPipe"},
		"Grep",
		map[string]any{"pattern": "ErrUnexpectedEOF|ErrShortWrite|ErrClosedPipe"},
	},
	{"Grep, rare word in any case, files", []string{"-l", "-i", "withcancelcause"}, "Grep", map[string]any{"pattern": "withcancelcause", "-i": true}},
	{"Grep, common word, files", []string{"-l", "return"}, "Grep", map[string]any{"pattern": "return"}},
	{"Grep, common word, counts", []string{"-c", "return"}, "Grep", map[string]any{"pattern": "return", "output_mode": "count"}},
	{"Grep, no text to look for, files", []string{"-l", "[a-z]+_[0-9]{4}"}, "Grep", map[string]any{"pattern": "[a-z]+_[0-9]{4}"}},
	{"Glob of one directory's files", []string{"--files", "-g", "/crypto/**/*.go"}, "Glob", map[string]any{"pattern": "crypto/**/*.go"}},
	{"Glob of names that are rare", []string{"--files", "-g", "**/*_plan9.go"}, "Glob", map[string]any{"pattern": "**/*_plan9.go"}},
}

// searchComparisons compares each search with rg, started again each time.
func searchComparisons(daemon *wire.Server) (list []ratio.Comparison) {
	src := filepath.Join(build.Default.GOROOT, "src")
	for _, s := range searches {
		input, err := json.Marshal(s.in)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		var expected []string
		same := func(result *tooldv1.ToolResult) error {
			text := result.GetContent()[0].GetText()
			found := linesBelow(text, src)
			if page := pages.FindStringSubmatch(text); page != nil && page[1] == strconv.Itoa(len(expected)) {
				return nil // the first page, of as many as rg has
			}
			if !slices.Equal(found, expected) {
				return fmt.Errorf("%s: %d lines, and rg has %d, or others", s.name, len(found), len(expected))
			}
			return nil
		}
		call := calling(daemon, src, 1, 1, s.tool, string(input), same)
		list = append(list, ratio.Comparison{
			Name: s.name + " / rg",
			Control: func(ctx context.Context) (time.Duration, error) {
				start := time.Now()
				cmd := exec.CommandContext(ctx, "rg", append([]string{"--no-config", "--hidden"}, s.rg...)...)
				cmd.Args, cmd.Dir = append(cmd.Args, src), src
				output, err := cmd.Output()
				took := time.Since(start)
				expected = linesBelow(string(output), src)
				return took, err
			},
			Toold: func(ctx context.Context) (time.Duration, error) {
				took, err := call(ctx)
				if err == nil {
					err = built(ctx, daemon)
				}
				return took, err
			},
			Note: func() string { return fmt.Sprintf(", %d found", len(expected)) },
		})
	}
	return list
}

// pages finds how many entries there are of which a result shows some.
var pages = regexp.MustCompile(`(?:Showing \w+ \d+ to \d+|newest) of (\d+)`)

// linesBelow returns the lines of a result that begin with a path in dir, sorted.
func linesBelow(text, dir string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, dir+"/") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	slices.Sort(lines)
	return lines
}

// built waits until the daemon reads no files in the background.
func built(ctx context.Context, daemon *wire.Server) error {
	for {
		info, err := daemon.Conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
		if err != nil || !info.GetSearchMemory().GetBuilding() {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
