// Package language runs the language servers of one session and sends them requests: one process
// for each root and language, started at its first use, kept, and started again when it has ended.
// It does not know which tool asks, what a call may read, nor where settings come from: its caller
// supplies texts and starts processes.
//
// A server is not trusted. What it sends has limits, no request waits longer than a limit, and
// nothing of it is left after Close.
package language

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
)

// A Server is one language server from the settings.
type Server struct {
	Language   string   // go, typescript, ...: the name of its entry in settings
	Command    []string // the program and its arguments; a name without a slash is looked up in PATH
	Extensions []string // of the files that it serves, with their dots
}

// Defaults returns the servers that are used for languages without one in settings. Each counts
// only if its program exists.
func Defaults() []Server {
	return []Server{
		{"go", []string{"gopls"}, []string{".go"}},
		{"typescript", []string{"typescript-language-server", "--stdio"}, []string{".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"}},
		{"python", []string{"pyright-langserver", "--stdio"}, []string{".py", ".pyi"}},
		{"rust", []string{"rust-analyzer"}, []string{".rs"}},
		{"c", []string{"clangd"}, []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"}},
	}
}

// A Host is what a Set needs from its session. Its functions are called each time and must be safe
// for concurrent use.
type Host struct {
	Roots   []string                          // real paths
	Servers func() []Server                   // the first one with a file's extension serves it
	Box     func(program string) *sandbox.Box // starts a server whose program has that path
	Environ func() []string                   // the session's environment; the box filters it
}

// limits are limits of time that tests shorten.
type limits struct {
	answer, start, load, publish, base time.Duration
	firstBackOff                       time.Duration
}

// ordinary are the usual limits. All but the first are our own: 30 s is half of the limit of an LSP
// call.
var ordinary = limits{
	answer:       30 * time.Second,       // for the answer to a request; a server that is silent for that long is ended
	start:        30 * time.Second,       // from the start of the process to the answer to initialize
	load:         20 * time.Second,       // how long a request waits while the server reports that it is loading
	publish:      10 * time.Second,       // for the diagnostics of a file that the server has just been sent
	base:         400 * time.Millisecond, // for those of the text before an edit
	firstBackOff: time.Second,            // after the second failure in a row; it doubles with each further one
}

// Further limits of time, our own.
const (
	quietLimit  = 3 * time.Second        // from the first diagnostics to the last
	quietTime   = 300 * time.Millisecond // after that time without any they count as complete
	editQuiet   = 200 * time.Millisecond // the same after an edit, where a call waits
	blindQuiet  = 500 * time.Millisecond // both, if the first may be about an earlier text: the server sends no version
	maxBackOff  = time.Minute
	waitBackOff = 5 * time.Second // a call does not wait longer than that; it fails
)

// Limits of size. Our own.
const (
	maxMessage     = 16 << 20 // of one message from a server
	maxParts       = 500_000  // parts of one message; a location has about 10
	maxOutbox      = 32 << 20 // bytes that wait for a server to read them
	maxHeader      = 4 << 10  // bytes of the lines before a message
	maxStderr      = 4 << 10  // bytes of the end of a server's standard error
	maxOpen        = 32       // documents that are open in a server
	maxServers     = 16       // of one session
	maxPublished   = 2000     // files whose diagnostics are kept
	maxFileDiags   = 1000     // diagnostics that are kept of one file
	maxDiagnostics = 10_000   // of all files; each has at most 2 KB
	maxProgress    = 100      // loads that a server reports at once
	maxScanned     = 50_000   // entries of a root that are checked for changes on the disk
)

// A Position is a position in a text as an editor shows it: counted from 1; characters are Unicode
// code points, and a tab is one.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// String returns line:character.
func (p Position) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Character) }

// A Range is the text between two positions; End is after its last character.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// A Location is a range of a file.
type Location struct {
	Path  string `json:"path"` // absolute
	Range Range  `json:"range"`
	Line  string `json:"text,omitempty"` // the text of its first line, without its ending
	// Unread is why the file's text could not be read. Line is then empty, and characters are in
	// the server's units.
	Unread error `json:"-"`
}

// String returns path:line:character, and the line if it is known.
func (l Location) String() string {
	where := l.Path + ":" + l.Range.Start.String()
	if l.Line != "" {
		where += ": " + l.Line
	}
	return where
}

// A Symbol is a named element of a program.
type Symbol struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`                // function, struct, ...
	Detail    string `json:"detail,omitempty"`    // as the server formats it
	Container string `json:"container,omitempty"` // what it belongs to
	Depth     int    `json:"depth"`               // in an outline, how many symbols enclose it
	Location
}

// A Call is one end of a function call, with the positions of the calls in the caller.
type Call struct {
	Symbol
	At []Range `json:"at"`
}

// Calls are the callers of a function and the functions that it calls.
type Calls struct {
	Of                 Symbol
	Incoming, Outgoing []Call
}

// A Severity is how serious a diagnostic is.
type Severity string

// The severities.
const (
	Error       Severity = "error"
	Warning     Severity = "warning"
	Information Severity = "information"
	Hint        Severity = "hint"
)

// A Diagnostic is a server's finding about a text.
type Diagnostic struct {
	Path     string   `json:"-"` // absolute
	Range    Range    `json:"range"`
	Severity Severity `json:"severity"`
	Code     string   `json:"code,omitempty"`
	Source   string   `json:"source,omitempty"` // what found it: compiler, printf, ...
	Message  string   `json:"message"`
}

// String formats the diagnostic as one line: path:line:character: severity: message (source code).
func (d Diagnostic) String() string {
	by := strings.TrimSpace(d.Source + " " + d.Code)
	if by != "" {
		by = " (" + by + ")"
	}
	return fmt.Sprintf("%s:%s: %s: %s%s", d.Path, d.Range.Start, d.Severity, strings.Join(strings.Fields(d.Message), " "), by)
}

// Diagnostics are those of one file.
type Diagnostics struct {
	List []Diagnostic
	// Complete is set if the server has reported everything about the present text.
	Complete bool
	Dropped  int // beyond the limit
}

// A Change is the change of one file in a renaming.
type Change struct {
	Path   string `json:"path"` // absolute
	Edits  int    `json:"edits"`
	Before []byte `json:"-"`
	After  []byte `json:"-"`
	Unread error  `json:"-"` // why the file's text could not be read; Before and After are then empty
}

// A Renaming is everything that a renaming would change.
type Renaming struct {
	Changes []Change // by path
	Other   int      // files that it would create, move or remove
}

// A Query is a question about a place in a file.
type Query struct {
	Path string   // a real path
	At   Position // ignored if the whole file is meant
	// Text returns the caller's text of a file, by its real path. It is called from one goroutine
	// at a time.
	Text func(path string) ([]byte, error)
	// Others are further files, by their real paths, whose text differs from the disk: the server
	// is sent them too.
	Others []string
}

// For returns the server of list that serves the file. Its error is a fault no_language_server.
func For(list []Server, path string) (Server, error) {
	extension := strings.ToLower(filepath.Ext(path))
	var known []string
	for _, s := range list {
		if extension != "" && slices.Contains(s.Extensions, extension) && len(s.Command) > 0 {
			return s, nil
		}
		known = append(known, s.Extensions...)
	}
	return Server{}, fault.Invalidf("no_language_server", "No language server is configured for files like %s. There are some for %s; "+
		`another is named in settings: "lsp": {"name": {"command": ["program"], "extensions": [".x"]}}.`, filepath.Base(path), strings.Join(known, " ")).At("/file_path")
}

// identifiers are the protocol's names of languages by extension, unless the name is the extension
// itself.
var identifiers = map[string]string{
	".tsx": "typescriptreact", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
	".jsx": "javascriptreact", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
	".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
}

// identifier returns the protocol's name for the language of the file.
func (s Server) identifier(path string) string {
	if id := identifiers[strings.ToLower(filepath.Ext(path))]; id != "" {
		return id
	}
	return s.Language
}

// options are initialization options by program.
var options = map[string]json.RawMessage{
	// A call waits for the diagnostics of an edit: 50 ms instead of gopls' second between its quick
	// check and the full one. A search for symbols of the project does not include everything that
	// it imports. With pull diagnostics gopls returns all of them at once.
	"gopls": json.RawMessage(`{"diagnosticsDelay": "50ms", "symbolScope": "workspace", "pullDiagnostics": true}`),
	// While it loads, a second server would answer that sees only one file and treats an import as
	// a definition.
	"typescript-language-server": json.RawMessage(`{"tsserver": {"useSyntaxServer": "never"}}`),
}

func (s Server) options() json.RawMessage {
	if preferred := options[s.name()]; preferred != nil {
		return preferred
	}
	return json.RawMessage(`{}`)
}

// name returns the name of the program.
func (s Server) name() string { return filepath.Base(s.Command[0]) }
