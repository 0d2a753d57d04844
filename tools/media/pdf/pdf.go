// Package pdf extracts the text of a PDF document by its pages, and draws pages. The document is not trusted and
// parsers are complex, so none runs in this process. A confined program with limits on its memory
// and output gets the document on its standard input: pdftotext and pdftoppm or, if those are not
// installed, this program itself as a reader of PDF (Main). The package does not know where a document comes from,
// nor how much of it is requested.
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

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
)

const (
	// memory is the program's limit, in bytes. The number is our own: many times what documents of
	// the accepted size need.
	memory = 1 << 30
	// maxText is how much text of one document is read, in bytes; the rest is dropped. The number
	// is our own: a result holds a hundredth of it.
	maxText = 16 << 20
	// imageSide is how many pixels the longer side of a page has that is drawn. Model APIs scale
	// larger images down.
	imageSide = 1568
	// maxComplaint is how much of the program's error output is kept, in bytes.
	maxComplaint = 4 << 10
)

// Reasons why a document cannot be read.
var (
	// ErrEncrypted: it needs a password.
	ErrEncrypted = errors.New("it is encrypted")
	// ErrEmpty: it has no pages.
	ErrEmpty = errors.New("it has no pages")
	// ErrUndrawable: the page cannot be drawn. Without pdftoppm only those that consist of images can.
	ErrUndrawable = errors.New("the page cannot be drawn")
)

// A DamagedError is a document that the program could not read, with the program's message.
type DamagedError struct{ Why string }

func (e *DamagedError) Error() string { return e.Why }

// A StartError means that no program could be started on the document.
type StartError struct{ error }

// Unwrap returns the error of the start.
func (e *StartError) Unwrap() error { return e.error }

// A Document is a PDF document in memory.
type Document struct {
	Data []byte
	Call string // id of the call that reads it, plain characters
	// Box starts the program, under its own policy. The program's denials are not added to the box:
	// they mean nothing to the user.
	Box *sandbox.Box
}

// Count returns the number of pages. The error is ErrEncrypted, ErrEmpty, a *DamagedError, a
// *StartError or the cause of ctx.
func (d Document) Count(ctx context.Context) (int, error) {
	said, err := d.run(ctx, []string{"pdfinfo", "-"}, "count")
	if err != nil {
		return 0, err
	}
	all := pagesLine.FindAllStringSubmatch(said, -1)
	if all == nil {
		return 0, &DamagedError{"the number of its pages was not found"}
	}
	found := all[len(all)-1] // before it are texts of the document
	n, err := strconv.Atoi(found[1])
	switch {
	case err != nil:
		return 0, &DamagedError{"it says that it has " + found[1] + " pages"}
	case n == 0:
		return 0, ErrEmpty
	}
	return n, nil
}

// pagesLine matches pdfinfo's line with the number of pages; Main writes the same.
var pagesLine = regexp.MustCompile(`(?m)^Pages:\s*(\d+)\s*$`)

// Text returns the text of the existing pages from first to last, without unreadable parts. It
// returns fewer pages if the text is too long. The errors are those of Count.
func (d Document) Text(ctx context.Context, first, last int) ([]string, error) {
	from, to := strconv.Itoa(first), strconv.Itoa(last)
	// pdftotext then keeps the order of the text in the document, which is usually that of reading.
	said, err := d.run(ctx, []string{"pdftotext", "-enc", "UTF-8", "-eol", "unix", "-f", from, "-l", to, "-", "-"}, "text", from, to)
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

// DrawsAll reports whether pages can be drawn whatever is on them.
func DrawsAll() bool { return findPoppler("pdftoppm") != "" }

// Image returns an image of a page, as PNG or JPEG. The error is ErrUndrawable, a *StartError or the
// cause of ctx.
func (d Document) Image(ctx context.Context, page int) ([]byte, error) {
	n, side := strconv.Itoa(page), strconv.Itoa(imageSide)
	said, err := d.run(ctx, []string{"pdftoppm", "-png", "-cropbox", "-scale-to", side, "-f", n, "-l", n, "-"}, "image", n)
	if _, damaged := errors.AsType[*DamagedError](err); damaged || err == nil && said == "" {
		err = ErrUndrawable // the other pages may be sound
	}
	return []byte(said), err
}

// tidy makes a page valid UTF-8 without trailing blanks and without repeated empty lines.
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

// run runs poppler's program if it and those for text are on the daemon's own PATH, otherwise this one.
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

// findPoppler returns the path of one of poppler's programs, or "" if they are not all installed.
func findPoppler(name string) string {
	path := ""
	for _, needed := range []string{"pdfinfo", "pdftotext", name} {
		found, err := exec.LookPath(needed)
		if err != nil {
			return ""
		}
		path = found
	}
	return path
}

var started atomic.Int64

// start runs a program on the document until its end, or until ctx ends. Only this function starts
// a process.
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
	case exit.Code != 0:
		return "", reason(exit, complaint.String())
	}
	return out.String(), nil
}

// box returns the document's box with the permissions that reading needs: limited memory, and read
// access to the program itself, which may be where a confined process sees nothing.
func (d Document) box(path string) *sandbox.Box {
	p := d.Box.Ready().Policy
	if p.Tier == "" || p.Tier == sandbox.None { // untrusted bytes are confined wherever possible
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

// exhausted matches the messages of runtimes that are out of memory.
var exhausted = regexp.MustCompile(`out of memory|(?:cannot|failed to) allocate|bad_alloc`)

// reason returns why the program has failed: what it said first, since the rest may be the stack of
// a reader that has crashed, or how it has ended.
func reason(exit sandbox.Exit, complaint string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(complaint, "\ufffd")), "\n")
	why := fmt.Sprintf("its reader ended with the exit code %d", exit.Code)
	switch {
	case passwords.MatchString(first):
		return ErrEncrypted
	case exhausted.MatchString(complaint):
		why = "reading it takes more memory than is allowed"
	case first != "":
		why = strings.TrimPrefix(first, "Syntax Error: ")
	case exit.Signal != "":
		why = "its reader was ended by " + exit.Signal
	}
	return &DamagedError{why}
}
