// Package shell analyzes what a bash script would do if bash ran it: which simple
// commands it holds, whether all it does is read, and the paths it names.
//
// It does not know the file system, the settings, or which file a program of the
// table is; it starts nothing and reads nothing. The caller passes what it may know
// of the environment. What it cannot decide counts as not read-only.
//
// The answer holds only for a call that runs the way the analysis assumes: bash
// without rc files, functions, aliases or shell options carried over, programs that
// obey none of the variables that [Analysis.Steered] finds, and, if it runs git, a
// repository without the settings of [GitKeyRuns] and [GitReadsMore].
package shell

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of an analysis. A script over one of the first three is never
// read-only, and its commands are still listed; over one of the last three it
// is not parsed at all, since the parser's time grows with the square of the
// depth of parentheses, and its stack with the depth of anything.
const (
	maxLength   = 10_000  // characters
	maxCommands = 500     // simple commands
	maxDepth    = 40      // statements inside statements, or scripts inside scripts
	maxParsed   = 1 << 17 // bytes; Linux takes no longer argument, so bash never gets it
	maxOpen     = 2_000   // opening parentheses
	maxNested   = 8_000   // other words and characters that open something
)

// openers open what may be nested. The parser takes about 2 us and 4 KiB of stack for each that
// is open, until it fails. Those that are closed again, or stand in a text, count too: whether
// they do is what the parser would have to find out.
var openers = []string{"[", "{", "if", "while", "until", "function", "case", "for", "select"}

// Errors that [Analysis.Err] can hold; any other is the parser's own.
var (
	ErrTooLong  = errors.New("the script is longer than 10,000 characters")
	ErrTooMany  = errors.New("the script has more than 500 commands")
	ErrTooDeep  = errors.New("the script is nested too deeply")
	ErrNotShell = errors.New("the script does not parse as bash")
	// ErrTooInvolved: what it runs is nested or repeated until the analysis gave up.
	ErrTooInvolved = errors.New("the script is too involved to work out what it would run")
)

// An Analysis is what a script would do. It is a plain value and belongs to
// the caller.
type Analysis struct {
	// Err is set when the script does not parse or is over a bound. Commands
	// then holds what was understood before that.
	Err error
	// ReadOnly: it writes nothing, starts nothing but programs named in it,
	// contacts no host, and changes no state that a later call could see,
	// apart from the working directory.
	ReadOnly bool
	// Concurrent: ReadOnly, and the working directory stays as it is.
	Concurrent bool
	// Reason is empty when Concurrent. Otherwise it is the part of the script
	// that decided, and why.
	Reason Reason
	// Commands are all simple commands in the order of the text, each wrapper
	// before what it runs: also those in substitutions and function bodies,
	// and in literal text given to bash -c, sh -c and eval.
	Commands []Command
	// Redirects are all redirections to and from files, /dev/null apart.
	Redirects []Redirect
	// Hosts are what redirections connect to, such as > /dev/tcp/HOST/PORT, as
	// written. Those that commands name are in Commands.
	Hosts []string
	// Reads and Writes are the paths that the script names, as far as they
	// are literal: absolute, beginning with ~, or relative to the working
	// directory at the start. A directory stands for all below it. After a cd
	// that may have failed, a relative path is listed as seen from both.
	Reads, Writes []string
	// Unlisted: it may read or write paths that are not in Reads and Writes.
	Unlisted bool
	// Opaque is the first part of the script that may run or change something
	// other than Commands and Redirects show, for instance an expansion that
	// executes, and why. No allow rule covers that. Empty: there is none.
	Opaque Reason
	// Background: it puts a command into the background itself, with &, coproc, nohup or setsid.
	Background bool
	// Git: it runs git, whose repository is to be looked at.
	Git bool
	// Last is the program whose exit code becomes the script's ("grep",
	// "git diff", "["), for [Benign]; empty when that is not certain.
	Last string

	// Walked is how many words were walked, those of nested texts and of each way to
	// read the words of a wrapper included: what the analysis has cost. It is bounded.
	Walked int
}

// Unknown is what a script does besides what its Analysis lists. The zero value: nothing.
type Unknown struct {
	// Cause is a clause about why what is listed is not all that the script may run or open; empty:
	// it is all.
	Cause string
	// Unread: some of the script was not understood at all.
	Unread bool
}

// Unknown returns what is unknown about the script.
func (a Analysis) Unknown() Unknown {
	switch {
	case a.Err != nil:
		return Unknown{a.Err.Error(), true}
	case !a.Opaque.Empty():
		return Unknown{Cause: "of " + a.Opaque.String()}
	}
	for _, r := range a.Redirects {
		known := r.Target.Literal || !r.Writes && r.Target.Spelled() != nil // which files a reading one may open is listed
		if !known || len(r.Paths) == 0 {
			return Unknown{Cause: "`" + r.Text + "` opens a file that is not literal"}
		}
	}
	return Unknown{}
}

// A SyntaxError is where a script stops being bash.
type SyntaxError struct {
	Line, Column uint // from 1; the column in bytes
	What         string
}

// SyntaxError returns where the script does not parse; false: it does, or was not parsed to its end
// for another reason.
func (a Analysis) SyntaxError() (SyntaxError, bool) {
	var parse syntax.ParseError
	var lang syntax.LangError
	switch {
	case !errors.Is(a.Err, ErrNotShell):
	case errors.As(a.Err, &parse):
		return SyntaxError{parse.Pos.Line(), parse.Pos.Col(), parse.Text}, true
	case errors.As(a.Err, &lang):
		return SyntaxError{lang.Pos.Line(), lang.Pos.Col(), lang.Feature + " is not bash"}, true
	}
	return SyntaxError{}, false
}

// A Setting is what is known of the shell at the moment it starts. In the zero value
// nothing is.
type Setting struct {
	// Environ holds variables of its environment: their names and values.
	Environ map[string]string
	// Aliases are those of git's configuration, by name.
	Aliases map[string]string
	// Looked: before the script runs, the caller looks at the files that command words
	// lead to, and at the settings of the repositories in all directories that a git is
	// listed to read, and confines what is [Command.Alone].
	Looked bool
}

// Analyze returns what script would do if bash ran it, whatever the environment is.
// It is pure and bounded, never panics, and returns the same answer every time.
func Analyze(script string) Analysis { return AnalyzeIn(script, Setting{}) }

// AnalyzeIn is [Analyze] for a shell of which more is known: what the script makes
// of the variables' values is listed as that.
func AnalyzeIn(script string, s Setting) Analysis {
	a := &analyzer{aliases: s.Aliases, looked: s.Looked}
	a.cwds, a.current, a.variables = []string{"."}, noCommand, exportedTo(script, s.Environ)
	if len(script) > maxLength && utf8.RuneCountInString(script) > maxLength {
		a.fail(ErrTooLong)
	}
	a.checkText(script)
	last := a.script(script, syntax.LangBash)
	return a.result(last)
}

// checkText refuses text that bash and the parser may take apart differently:
// a carriage return is part of a word for one and white space for the other.
func (a *findings) checkText(script string) {
	control := func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }
	if at := strings.IndexFunc(script, control); at >= 0 {
		a.hidden(fmt.Sprintf("%q", script[at]), "a control character can hide a command")
		return
	}
	if strings.Contains(script, "\\\n") && glued.MatchString(script) {
		a.hidden(`\`, "a backslash joins it to the next line; leave a blank beside the backslash")
	}
	if !utf8.ValidString(script) {
		a.hidden("script", "it is not valid UTF-8")
	}
	if strings.HasSuffix(script, `\`) {
		a.hidden(`\`, "a backslash at the end belongs to the word before it")
	}
}

// glued finds a line that a backslash joins to the next one without a blank on
// either side. Bash makes one token of a dollar sign and a parenthesis there,
// of two halves of an operator, or of the end of a heredoc, where the parser
// sees none. A tab is not a blank here: heredocs drop it.
var glued = regexp.MustCompile(`[^ \\]\\\n[^ ]`)

// endComments makes every comment end with its line. The parser takes a
// backslash at the end of a comment for a continuation, bash does not. A line
// with a # that is not a comment may be changed too: the result is a second
// reading, beside that of the text itself.
func endComments(script string) string {
	if !strings.Contains(script, "\\\n") {
		return script
	}
	lines := strings.SplitAfter(script, "\n")
	for i, line := range lines {
		if text, continued := strings.CutSuffix(line, "\\\n"); continued && strings.Contains(text, "#") {
			lines[i] = text + " \n"
		}
	}
	return strings.Join(lines, "")
}

var parsers = map[syntax.LangVariant]*sync.Pool{
	syntax.LangBash:  {New: func() any { return newParser(syntax.LangBash) }},
	syntax.LangPOSIX: {New: func() any { return newParser(syntax.LangPOSIX) }},
}

func newParser(lang syntax.LangVariant) *syntax.Parser { return syntax.NewParser(syntax.Variant(lang)) }

// parse returns the statements before the first error. The parser is not
// ours and meets arbitrary bytes, so a panic in it counts as an error.
func parse(script string, lang syntax.LangVariant) (stmts []*syntax.Stmt, err error) {
	if len(script) > maxParsed {
		return nil, ErrTooLong
	}
	nested := 0
	for _, opener := range openers {
		nested += strings.Count(script, opener)
	}
	if strings.Count(script, "(")+strings.Count(script, "$[") > maxOpen || nested > maxNested {
		return nil, ErrTooDeep
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: the parser gave up: %v", ErrNotShell, r)
		}
	}()
	p := parsers[lang].Get().(*syntax.Parser)
	for stmt, err := range p.StmtsSeq(strings.NewReader(script)) {
		if err != nil {
			return stmts, fmt.Errorf("%w: %w", ErrNotShell, err)
		}
		stmts = append(stmts, stmt)
	}
	parsers[lang].Put(p)
	return stmts, nil
}
