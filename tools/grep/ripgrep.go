// ripgrep as an engine: rg is started on the files that our own walk has selected, and parse.go
// parses its output. rg gets names and not descriptors, so a file that is replaced by a link
// meanwhile is read through the link. Where rules deny reading files, rg is not used.

package grep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/index"
	"github.com/toold/toold/tools/fs/walk"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/grep/selection"
)

// A ripgrep is the path of rg; empty: it is not installed.
type ripgrep string

// findRipgrep looks up rg on the daemon's own PATH, where a session cannot put anything.
func findRipgrep() ripgrep {
	found, err := exec.LookPath("rg")
	if err != nil {
		return ""
	}
	return ripgrep(found)
}

// errUnusable means that this rg lacks an option that is needed.
var errUnusable = errors.New("rg cannot be used")

// Limits of one batch: bytes of names, and number of names. The kernel allows 2 MiB, with 8 bytes
// more for each name.
const (
	batchBytes = 768 << 10
	batchNames = 32 << 10
)

// flags returns rg's arguments before the pattern.
func flags(in Input, q *query) []string {
	list := []string{"--no-config", "--no-ignore", "--color=never", "--no-heading", "--with-filename", "--null", "--text"}
	switch q.mode {
	case modeFiles:
		list = append(list, "--files-with-matches")
	case modeCount:
		count := "--count"
		if in.Multiline { // otherwise the pattern would decide what rg counts
			count = "--count-matches"
		}
		list = append(list, count)
	default:
		list = append(list, "--line-number", "--no-context-separator",
			"--before-context="+strconv.FormatInt(q.before, 10), "--after-context="+strconv.FormatInt(q.after, 10))
		if q.only {
			list = append(list, "--only-matching")
		}
	}
	if in.IgnoreCase {
		list = append(list, "--ignore-case")
	}
	if in.Multiline {
		list = append(list, "--multiline", "--multiline-dotall")
	}
	return list
}

// check reports whether rg accepts the pattern. The error is a fault "bad_pattern" or errUnusable.
func (rg ripgrep) check(ctx context.Context, env *tools.Env, in Input) error {
	known := flags(in, in.query())
	code, message, err := rg.ask(ctx, env, known, in.Pattern)
	if err != nil {
		return errUnusable
	}
	if code != 2 || ctx.Err() != nil {
		return nil
	}
	if code, _, err := rg.ask(ctx, env, known, "x"); err != nil || code == 2 {
		return errUnusable
	}
	return badPattern(strings.TrimSpace(message))
}

// ask runs rg with pattern on empty input.
func (rg ripgrep) ask(ctx context.Context, env *tools.Env, flags []string, pattern string) (code int, message string, err error) {
	complaint := sandbox.Beginning{Most: maxComplaints}
	args := append(flags[:len(flags):len(flags)], "--regexp="+pattern, "/dev/null")
	exit, err := rg.start(ctx, env, sandbox.Command{Dir: "/", Args: args, Stdout: io.Discard, Stderr: &complaint})
	return exit.Code, complaint.String(), err
}

var started atomic.Int64

// start runs rg as c describes until its end, or until ctx ends. Only this function starts a
// process.
func (rg ripgrep) start(ctx context.Context, env *tools.Env, c sandbox.Command) (sandbox.Exit, error) {
	c.ID, c.Path, c.Env = fmt.Sprintf("%s-rg%d", env.CallID, started.Add(1)), string(rg), []string{"LC_ALL=C.UTF-8"}
	c.Args = append([]string{"rg"}, c.Args...)
	process, err := env.Box.Start(c)
	if err != nil {
		return sandbox.Exit{}, err
	}
	stop := context.AfterFunc(ctx, process.Stop)
	defer stop()
	return process.Wait(), nil
}

// maxComplaints is how much of rg's error output is kept, in bytes; a longer list is shortened
// anyway.
const maxComplaints = 64 << 10

// An rgEngine collects names and starts rg whenever a batch is full.
type rgEngine struct {
	*search
	own     *ownEngine
	rg      ripgrep
	flags   []string
	pattern string

	mu    sync.Mutex
	names []string
	bytes int
}

// visit adds a file to the batch. Binary files are left out here if their name does not look like
// text.
func (e *rgEngine) visit(ctx context.Context, f *walk.File, known *index.Text) {
	if known == nil && !selection.Textual(f.Name()) && !e.sniff(f) {
		return
	}
	e.searched.Add(1)
	e.mu.Lock()
	e.names = append(e.names, "./"+f.Path())
	e.bytes += len(f.Path()) + 3
	var full []string
	if e.bytes >= batchBytes || len(e.names) >= batchNames {
		full, e.names, e.bytes = e.names, nil, 0
	}
	e.mu.Unlock()
	if full != nil {
		e.run(ctx, full, nil, e.deliver)
	}
}

// pass lets rg search binary files whose names look like text, as visit does.
func (e *rgEngine) pass(name string, isBinary bool) bool {
	return !(isBinary && selection.Textual(name)) && e.own.pass(name, isBinary)
}

// buffer searches a text with our own engine if that finds the same as rg; otherwise rg gets it on
// its standard input.
func (e *rgEngine) buffer(ctx context.Context, path string, b workspace.Buffer) {
	switch {
	case e.expr != nil && e.expr.exact:
		e.own.buffer(ctx, path, b)
	case index.IsBinary(b.Text):
		e.binaries.Add(1)
	default:
		e.searched.Add(1)
		e.run(ctx, []string{"-"}, b.Text, func(h *hits) {
			h.path, h.modified = path, b.Modified
			e.got.add(h)
		})
	}
}

func (e *rgEngine) finish(ctx context.Context) {
	if len(e.names) > 0 {
		e.run(ctx, e.names, nil, e.deliver)
	}
}

// sniff reports whether a file should be searched.
func (e *rgEngine) sniff(f *walk.File) bool {
	in, err := f.Open()
	if err != nil {
		e.unreadable(f.Path(), err)
		return false
	}
	defer in.Close()
	binary, err := beginsBinary(in)
	if err != nil {
		e.unreadable(f.Path(), err)
	} else if binary {
		e.binaries.Add(1)
	}
	return err == nil && !binary
}

// heads are buffers for beginsBinary.
var heads = sync.Pool{New: func() any { return new([index.Sniffed]byte) }}

func beginsBinary(r io.Reader) (bool, error) {
	head := heads.Get().(*[index.Sniffed]byte)
	defer heads.Put(head)
	n, err := io.ReadFull(r, head[:])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return index.IsBinary(head[:n]), err
}

// run searches one batch. input is what rg reads for the name "-".
func (e *rgEngine) run(ctx context.Context, names []string, input []byte, deliver func(*hits)) {
	if ctx.Err() != nil {
		return
	}
	complaint := sandbox.Beginning{Most: maxComplaints}
	out := &parser{query: e.query, deliver: deliver}
	args := append(e.flags[:len(e.flags):len(e.flags)], "--regexp="+e.pattern, "--")
	exit, err := e.rg.start(ctx, e.env, sandbox.Command{Dir: e.tree.Real, Args: append(args, names...), Input: input, Stdout: out, Stderr: &complaint})
	out.close()
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil:
		e.note(fmt.Sprintf("rg could not be started: %v", err))
	case exit.Output != nil:
		e.note(fmt.Sprintf("rg's output was not read to its end: %v", exit.Output))
	case exit.Code == 2:
		for line := range strings.Lines(complaint.String()) {
			e.complain(strings.TrimSpace(line))
		}
	case exit.Code != 0 && exit.Code != 1:
		e.note(fmt.Sprintf("rg ended early, with exit code %d %s", exit.Code, exit.Signal))
	}
}

var complaints = regexp.MustCompile(`^(?:rg: )?(?:\./)?(.*): .* \(os error (\d+)\)$`)

// complain records an error message of rg about a file in our own words.
func (e *rgEngine) complain(text string) {
	parts := complaints.FindStringSubmatch(text)
	if parts == nil {
		e.note(text)
		return
	}
	number, _ := strconv.Atoi(parts[2])
	e.unreadable(parts[1], syscall.Errno(number))
}

// deliver collects the hits of one file, unless it is a binary file with a textual name.
func (e *rgEngine) deliver(h *hits) {
	in, err := e.tree.Root.OpenFile(h.path, syscall.O_NONBLOCK, 0)
	if err != nil {
		return // the file is gone
	}
	defer in.Close()
	if selection.Textual(path.Base(h.path)) {
		if binary, err := beginsBinary(in); err == nil && binary {
			e.searched.Add(-1)
			e.binaries.Add(1)
			return
		}
	}
	if info, err := in.Stat(); err == nil {
		h.modified = info.ModTime()
	}
	e.got.add(h)
}
