// Package language runs the language servers of one session and asks them: one process for each root and language,
// started at its first use, kept, and started again when it has ended. It does not know which tool asks, what a call may
// read, nor where settings come from: text is given to it, and so is what starts a process.
//
// A server is a foreign program. What it sends is bounded, what it does not send is waited for no longer than a limit, and
// whatever it does, nothing of it is left after Close.
package language

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/sandbox"
)

// A Server is one language server as settings have it.
type Server struct {
	Language   string   // go, typescript, ...: the name of its entry in settings
	Command    []string // the program and its arguments; a name without a slash is looked for in PATH
	Extensions []string // of the files that it serves, with their dots
}

// Defaults are the servers that are used where settings name none for a language. Each counts only if its program is there.
func Defaults() []Server {
	return []Server{
		{"go", []string{"gopls"}, []string{".go"}},
		{"typescript", []string{"typescript-language-server", "--stdio"}, []string{".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"}},
		{"python", []string{"pyright-langserver", "--stdio"}, []string{".py", ".pyi"}},
		{"rust", []string{"rust-analyzer"}, []string{".rs"}},
		{"c", []string{"clangd"}, []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"}},
	}
}

// A Host is what a Set stands on. The functions are asked again each time, from any goroutine.
type Host struct {
	Roots   []string                          // real paths
	Servers func() []Server                   // the first one that has a file's extension serves it
	Box     func(program string) *sandbox.Box // what a server is started with whose program lies there
	Environ func() []string                   // of the session; the box filters it
}

// Limits of time. Ours, but for the first: 30 s is half of what a call of the LSP tool gets.
const (
	answerLimit  = 30 * time.Second       // for the answer to a request; a server that is silent for so long is ended
	startLimit   = 30 * time.Second       // from the start of the process to the answer to initialize
	loadLimit    = 20 * time.Second       // how long a request waits for a server that says it is loading
	publishLimit = 10 * time.Second       // for the diagnostics of a file that has just been shown to the server
	baseLimit    = 400 * time.Millisecond // for those of the text before an edit
	quietLimit   = 3 * time.Second        // for the last of them after the first
	quietTime    = 300 * time.Millisecond // without any they count as complete
	editQuiet    = 200 * time.Millisecond // the same after an edit, where somebody waits
	blindQuiet   = 500 * time.Millisecond // either, where the first may have been about an earlier text: a server that names no version
	firstBackOff = time.Second            // after the second end in a row; each further one doubles it
	maxBackOff   = time.Minute
	waitBackOff  = 5 * time.Second // a call waits for no longer one; it is told
)

// Limits of size. Ours.
const (
	maxMessage     = 16 << 20 // bytes of one message from a server
	maxParts       = 500_000  // of what one message is put together of; a location has about 10
	maxOutbox      = 32 << 20 // bytes that wait for a server to read them
	maxHeader      = 4 << 10  // bytes of the lines before a message
	maxStderr      = 4 << 10  // bytes of the end of what a server prints on its standard error
	maxOpen        = 32       // documents that are open in a server
	maxServers     = 16       // of one session
	maxPublished   = 2000     // files whose diagnostics are kept
	maxFileDiags   = 1000     // diagnostics that are kept of one file
	maxDiagnostics = 10_000   // and of all of them; each has 2 KB at most
	maxProgress    = 100      // loads that a server says are under way
	maxScanned     = 50_000   // entries of a root that are looked at for changes on the disk
)

// A Position is a place in a text as an editor shows it: from 1, characters are Unicode code points and a tab is one.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// A Range is what lies between two positions; End is behind its last character.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// A Location is a range of a file.
type Location struct {
	Path  string // absolute
	Range Range
	Line  string // the text of its first line, without its ending
	// Unread is why the file's text was not to be had; Line is empty then, and characters count the server's units.
	Unread error
}

// A Symbol is something that has a name.
type Symbol struct {
	Name      string
	Kind      string // function, struct, ...
	Detail    string // as the server puts it
	Container string // what it belongs to
	Depth     int    // in an outline, how many symbols it lies in
	Location
}

// A Call is one end of a call of a function, and where in the caller the other one is called.
type Call struct {
	Symbol
	At []Range
}

// Calls are who calls a function and whom it calls.
type Calls struct {
	Of                 Symbol
	Incoming, Outgoing []Call
}

// A Severity says how bad it is.
type Severity string

// The severities.
const (
	Error       Severity = "error"
	Warning     Severity = "warning"
	Information Severity = "information"
	Hint        Severity = "hint"
)

// A Diagnostic is what a server has to say against a text.
type Diagnostic struct {
	Path     string // absolute
	Range    Range
	Severity Severity
	Code     string
	Source   string // who found it: compiler, printf, ...
	Message  string
}

// String puts it into one line of a text: path:line:character: severity: message (source code).
func (d Diagnostic) String() string {
	by := strings.TrimSpace(d.Source + " " + d.Code)
	if by != "" {
		by = " (" + by + ")"
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s%s", d.Path, d.Range.Start.Line, d.Range.Start.Character, d.Severity, strings.Join(strings.Fields(d.Message), " "), by)
}

// Diagnostics are those of one file.
type Diagnostics struct {
	List []Diagnostic
	// Complete: the server has told what it finds in the present text.
	Complete bool
	Dropped  int // beyond what is kept
}

// A Change is what becomes of one file in a renaming.
type Change struct {
	Path          string // absolute
	Before, After []byte
	Edits         int
	Unread        error // why the file's text was not to be had; Before and After are empty then
}

// A Renaming is everything that a renaming would change.
type Renaming struct {
	Changes []Change // by path
	Other   int      // files that it would make, move or remove
}

// A Query is about a place in a file.
type Query struct {
	Path string   // a real path
	At   Position // not looked at where the whole file is meant
	// Text gives a file's text as the caller sees it, by its real path. It is asked from one goroutine at a time.
	Text func(path string) ([]byte, error)
	// Others are further files, by their real paths, whose text is not what stands on the disk: the server is shown them too.
	Others []string
}

// For finds the server among list that serves the file. Its error is a fault no_language_server.
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

// identifiers are the protocol's names of languages by extension, where they are not the extension's own word.
var identifiers = map[string]string{
	".tsx": "typescriptreact", ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
	".jsx": "javascriptreact", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
	".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
}

// identifier is the protocol's name for the language of the file.
func (s Server) identifier(path string) string {
	if id := identifiers[strings.ToLower(filepath.Ext(path))]; id != "" {
		return id
	}
	return s.Language
}

// options are what a server is told of our preferences, by its program.
var options = map[string]json.RawMessage{
	// Somebody waits for the diagnostics of an edit: 50 ms instead of gopls' second between its quick look and the whole. And
	// who looks for a symbol of the project does not mean those of everything that it imports. Asked for diagnostics it gives all
	// of them at once.
	"gopls": json.RawMessage(`{"diagnosticsDelay": "50ms", "symbolScope": "workspace", "pullDiagnostics": true}`),
	// While it loads, a second server would answer that sees one file alone, and calls an import a definition.
	"typescript-language-server": json.RawMessage(`{"tsserver": {"useSyntaxServer": "never"}}`),
}

func (s Server) options() json.RawMessage {
	if wishes := options[s.name()]; wishes != nil {
		return wishes
	}
	return json.RawMessage(`{}`)
}

// name is what people call it.
func (s Server) name() string { return filepath.Base(s.Command[0]) }
