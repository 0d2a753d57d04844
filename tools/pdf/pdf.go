// Package pdf gets the text of a PDF document by its pages. The bytes are foreign and their parsers many: none of them
// runs in this process. A program gets the document on its standard input, confined, with limits on its memory and its
// output: pdftotext, or where there is none this program itself, as a reader of PDF that does nothing else (Main). The
// package does not know where a document comes from, nor how much of it is asked for.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/toold/toold/tools/pathname"
	"github.com/toold/toold/tools/sandbox"
)

const (
	// memory is how much the program may take, in bytes. Ours: many times what documents of the size that is read need.
	memory = 1 << 30
	// maxText is how much text is taken from one document, in bytes; what is behind it is dropped. Ours: a result holds a
	// hundredth of it.
	maxText = 16 << 20
	// maxComplaint is how much of what the program complains about is kept, in bytes.
	maxComplaint = 4 << 10
)

// The ways in which a document cannot be read.
var (
	// ErrEncrypted: it needs a password.
	ErrEncrypted = errors.New("it is encrypted")
	// ErrEmpty: it has no pages.
	ErrEmpty = errors.New("it has no pages")
)

// A DamagedError says that the program could make nothing of the document, in the program's words.
type DamagedError struct{ Why string }

func (e *DamagedError) Error() string { return e.Why }

// A StartError says that no program could be started on the document.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns what the start has failed with.
func (e *StartError) Unwrap() error { return e.Err }

// A Document is a PDF document in memory.
type Document struct {
	Data []byte
	Call string // id of the call that it is read for, plain characters
	// Box starts the program, under a policy of the document's own. Its denials are not added to: what the program was denied
	// says nothing to anybody.
	Box *sandbox.Box
}

// Count returns the number of pages. The error is ErrEncrypted, ErrEmpty, a *DamagedError, a *StartError or the cause of ctx.
func (d Document) Count(ctx context.Context) (int, error) {
	said, err := d.run(ctx, popplerCount, "count")
	if err != nil {
		return 0, err
	}
	all := pagesLine.FindAllStringSubmatch(said, -1)
	if all == nil {
		return 0, &DamagedError{"the number of its pages was not found"}
	}
	found := all[len(all)-1] // before it stand texts of the document's own
	n, err := strconv.Atoi(found[1])
	switch {
	case err != nil:
		return 0, &DamagedError{"it says that it has " + found[1] + " pages"}
	case n == 0:
		return 0, ErrEmpty
	}
	return n, nil
}

// pagesLine is how pdfinfo, and Main like it, tell the number of pages.
var pagesLine = regexp.MustCompile(`(?m)^Pages:\s*(\d+)\s*$`)

// Text returns the text of the pages from first to last, which exist; what could not be read of a page is left out. Fewer
// pages come when there was too much text. The errors are Count's.
func (d Document) Text(ctx context.Context, first, last int) ([]string, error) {
	said, err := d.run(ctx, popplerText(first, last), "text", strconv.Itoa(first), strconv.Itoa(last))
	if err != nil {
		return nil, err
	}
	pages := strings.Split(said, "\f") // ends each page
	if len(pages) > 1 {
		pages = pages[:len(pages)-1]
	}
	pages = pages[:min(len(pages), last-first+1)]
	for i, page := range pages {
		pages[i] = tidy(page)
	}
	return pages, nil
}

// tidy makes a page valid UTF-8 without trailing blanks, and without more than one empty line between two others.
func tidy(page string) string {
	var out []string
	for line := range strings.Lines(strings.ToValidUTF8(page, "\ufffd")) {
		line = strings.TrimRight(strings.ReplaceAll(line, "\x00", ""), " \t\r\n")
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

var popplerCount = []string{"pdfinfo", "-"}

// popplerText keeps the order in which the text stands in the document, which is as a rule that of reading.
func popplerText(first, last int) []string {
	return []string{"pdftotext", "-enc", "UTF-8", "-eol", "unix", "-f", strconv.Itoa(first), "-l", strconv.Itoa(last), "-", "-"}
}

// run asks poppler's program if both are on the daemon's own PATH, else this one.
func (d Document) run(ctx context.Context, poppler []string, own ...string) (string, error) {
	path, args := findPoppler(poppler[0]), poppler
	if path == "" {
		self, err := os.Executable()
		if err == nil {
			self, err = filepath.EvalSymlinks(self)
		}
		if err != nil {
			return "", &StartError{err}
		}
		path, args = self, append([]string{mainName}, own...)
	}
	return d.start(ctx, path, args)
}

// findPoppler returns the path of one of poppler's programs, or none if they are not all there.
func findPoppler(name string) (found string) {
	for _, needed := range []string{"pdfinfo", "pdftotext"} {
		path, err := exec.LookPath(needed)
		if err != nil {
			return ""
		}
		if needed == name {
			found = path
		}
	}
	return found
}

var started atomic.Int64

// start runs a program on the document to its end, or until ctx ends. This is the only place that starts a process.
func (d Document) start(ctx context.Context, path string, args []string) (string, error) {
	out, complaint := sandbox.Beginning{Most: maxText}, sandbox.Beginning{Most: maxComplaint}
	process, err := d.box(path).Start(sandbox.Command{
		ID: fmt.Sprintf("%s-pdf%d", d.Call, started.Add(1)), Path: path, Args: args, Dir: "/",
		Env: []string{"LC_ALL=C.UTF-8"}, Input: d.Data, Stdout: &out, Stderr: &complaint,
	})
	if err != nil {
		return "", &StartError{err}
	}
	stop := context.AfterFunc(ctx, process.Stop)
	defer stop()
	exit := process.Wait()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case exit.Code != 0 && isEncrypted(complaint.String()):
		return "", ErrEncrypted
	case exit.Code != 0:
		return "", &DamagedError{reason(exit, complaint.String())}
	}
	return out.String(), nil
}

// box is the document's with as little as reading needs: memory within limits, and the program itself, which may lie where
// a confined process sees nothing.
func (d Document) box(path string) *sandbox.Box {
	p := d.Box.Policy
	if p.Tier == "" || p.Tier == sandbox.None { // foreign bytes are confined wherever that can be done
		p = sandbox.Policy{Tier: sandbox.Fast, Strict: true, Optional: true}
	}
	p.Network, p.Session, p.UnixSockets = sandbox.Network{}, "", false
	p.Limits.Memory = memory
	if !slices.ContainsFunc(sandbox.SystemTrees, func(tree string) bool { return pathname.Within(tree, path) }) {
		p.Places = append(slices.Clone(p.Places), sandbox.Place{Path: path, Access: sandbox.Read})
	}
	return d.Box.Under(p)
}

var passwords = regexp.MustCompile(`(?i)incorrect password|encrypt`)

// isEncrypted looks at the first line alone: what follows may be the stack of a reader that has crashed.
func isEncrypted(complaint string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(complaint), "\n")
	return passwords.MatchString(first)
}

// exhausted is how runtimes say that there is no memory for them.
var exhausted = regexp.MustCompile(`out of memory|(?:cannot|failed to) allocate|bad_alloc`)

// reason returns the first line of a complaint, or how the program has ended.
func reason(exit sandbox.Exit, complaint string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(complaint, "\ufffd")), "\n")
	switch {
	case exhausted.MatchString(complaint):
		return "reading it takes more memory than is given for that"
	case first != "":
		return strings.TrimPrefix(first, "Syntax Error: ")
	case exit.Signal != "":
		return "its reader was ended by " + exit.Signal
	}
	return fmt.Sprintf("its reader ended with the exit code %d", exit.Code)
}
