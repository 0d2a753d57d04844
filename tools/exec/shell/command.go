// What an analysis lists: simple commands and redirections, each with the
// paths that it names itself.

package shell

import (
	"slices"
	"strings"
)

// A Command is one simple command: a program or builtin with its words.
type Command struct {
	// Name is the command word as bash would look it up, or as written when
	// that is unknown; empty for an assignment without a command. Compound tests are
	// listed by their keyword: "[[", "((", "let".
	Name string
	// Words are the command word and its arguments.
	Words []Word
	// Subcommand is "git" and what follows its options, for a git with options in
	// front of its subcommand; otherwise nil.
	Subcommand []Word
	// SubcommandSafe: the options that Subcommand leaves out lead git neither
	// out of the directory below it nor to another setting or program.
	SubcommandSafe bool
	// Alias is the name of the alias of git's configuration that was judged by what it
	// stands for. A command of git of that name, also one that is a program of its own,
	// would run instead. Empty: it is not an alias.
	Alias string
	// Assigns are the names assigned in front of it, or of a wrapper that is
	// looked through, or without a command, apart from those on the fixed
	// list of harmless ones with a plain literal value. No allow rule passes
	// any of them.
	Assigns []string
	// Sets are the assignments that stand in front of it, or without a command, apart from those of
	// arrays.
	Sets []Assignment
	// Text is the source, without redirections.
	Text string
	// Literal is set if no expansion takes part in the command word, so Name is what runs.
	Literal bool
	// Dirs are where it may run, in the forms of [Analysis].Reads and seen from
	// where the script starts; a wrapper around it may go elsewhere. Empty: that is
	// not known. Behind `cd DIR &&` it is only DIR.
	Dirs []string
	// Reads and Writes are the paths that it names itself, in the forms of
	// [Analysis].Reads. Those that a wrapper's command names are not the
	// wrapper's.
	Reads, Writes []string
	manners       []Manner // of Writes, one for each
	// Unlisted: it may read or write paths that are not in Reads and Writes.
	Unlisted bool
	// Vague: it is Unlisted since it reads or copies what one of its words names,
	// and that is unknown.
	Vague bool
	// Names: it shows names and facts (kinds, sizes, times) of what is below the
	// directories that it reads, or what git keeps of tracked files; never the
	// content of other files.
	Names bool
	// Tracked are directories, in the forms of [Analysis].Reads, from which it shows
	// content that git keeps; "." is the whole repository, and DIR/. that of DIR. Names
	// is set too where it shows no other content of what it reads.
	Tracked []string
	// Flags are those of a search through directories that was understood in full;
	// nil: it is not such a search, or was not understood.
	Flags []Flag
	// Picks: it takes only those of the files below the directories that it reads;
	// nil: all of them.
	Picks *Picks
	// MayRun are texts that may name programs that it runs: its words and what it reads,
	// where no table has what the program does with them, and the values of variables
	// that are assigned in front of it or exported.
	MayRun []string
	// Fed are words of the script that it reads on its standard input, where what it does
	// with them is unknown.
	Fed []string
	// Via is what runs it ("timeout", "bash -c", "find -exec"), the nearest
	// only; empty when the shell does.
	Via string
	// Transparent: a wrapper that every kind of rule looks through, so that
	// an allow rule need not match it, only what it runs. Never with Assigns.
	Transparent bool
	// DenyOnly: found behind a wrapper that only deny and ask rules look
	// through. An allow rule must match the wrapper instead.
	DenyOnly bool
	// Remote: it runs on another machine, or in a container, so that what it names are
	// not files here. Always DenyOnly.
	Remote bool
	// ReadOnly: by itself it is. The script still may not be, but then at least
	// one of its commands or redirections is not, or it is Opaque.
	ReadOnly bool
	// Why is a clause about why it is not ReadOnly; empty if it is, or if only what runs
	// beside it is the reason.
	Why string
	// Alone: it is ReadOnly only in a script that is, and with processes that the
	// sandbox keeps from changing anything: it may run or write more than its words name.
	Alone bool
	// Function: it calls a function of the script, whose commands are listed behind it.
	Function bool
	// ForkBomb: it is not a command but a function, under its name, that starts
	// copies of itself beside itself whenever it is called.
	ForkBomb bool
}

// An Assignment is NAME=VALUE or NAME+=VALUE, with the value as written.
type Assignment struct {
	Name  string
	Value Word
}

// String joins the words with single spaces: the form that rules are matched
// against, without assignments and redirections.
func (c Command) String() string {
	texts := make([]string, len(c.Words))
	for i, w := range c.Words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

// IsTest reports whether the command is one of the shell's own compound tests, for which no program
// is run.
func (c *Command) IsTest() bool { return c.Name == "[[" || c.Name == "((" }

// Enters returns the directory, as written, that a cd with one literal word goes to; ok is false
// for any other command.
func (c *Command) Enters() (dir string, ok bool) {
	if c.Name != "cd" || len(c.Words) != 2 || !c.Words[1].Literal {
		return "", false
	}
	return c.Words[1].Text, true
}

// NamesFile reports whether the command names its program by a literal path.
func (c *Command) NamesFile() bool { return c.Literal && strings.Contains(c.Name, "/") }

// is reports whether the word is literally that text.
func (w Word) is(text string) bool { return w.Literal && w.Text == text }

// in reports whether the word is literally one of a list, which is separated by blanks and has one
// at each end.
func (w Word) in(list string) bool { return w.Literal && listed(list, w.Text) }

// dashed reports whether the word as written looks like a flag.
func (w Word) dashed() bool { return strings.HasPrefix(w.Text, "-") }

// MayName reports whether a program may take the word for the name of a file, and not for a flag.
func (w Word) MayName() bool {
	return w.Text != "" && !w.dashed() && !strings.ContainsRune(w.Text, 0)
}

// Source returns the command as written, with single blanks, if it is literal, assigns nothing and
// has quotes in it; empty otherwise: it would mean something else than the words, or the same.
func (c *Command) Source() string {
	if len(c.Assigns) > 0 || slices.ContainsFunc(c.Words, func(w Word) bool { return !w.Literal }) || !strings.ContainsAny(c.Text, `"'`) {
		return ""
	}
	return strings.Join(strings.Fields(c.Text), " ")
}

// RunsItsOwnWay reports whether the command runs others in a way of its own, so that what it does
// depends on all of its words.
func (c *Command) RunsItsOwnWay() bool {
	switch base(c.Name) {
	case "watch", "setsid", "ionice", "flock":
		return true
	case "find":
		return slices.ContainsFunc(c.Words, func(w Word) bool { return !w.Literal || acts(w.Text) })
	}
	return false
}

// A Redirect is a redirection that opens a file.
type Redirect struct {
	Op     string // as written: ">", ">>", "&>", "<", "<>"
	Target Word
	// Text is the whole redirection as written.
	Text string
	// Paths are what Target may name, in the forms of [Analysis].Reads: more
	// than one after a cd that may have failed, or for the values of a variable.
	// Empty: that is not known.
	Paths  []string
	Writes bool
}

// A Flag is one flag of a command, as its program takes it.
type Flag struct {
	Name  string // "-n" or the full "--name"
	Value Word
	reads bool // its value names a file
}

// Glob returns a value that is a plain pattern in one word with the flag's name, as in
// --include=*.go, and that word, which bash leaves as it is unless a file fits it. ok is false for
// any other value.
func (f Flag) Glob() (glob, word string, ok bool) {
	word = f.Value.Text
	glob, ok = strings.CutPrefix(word, f.Name+"=")
	return glob, word, ok && isPlainPattern(glob)
}

// Picks are the files that a command takes among those that another one names to it.
type Picks struct {
	// From are the directories, in the forms of [Analysis].Reads, that the files lie
	// below.
	From []string
	// Names are patterns, as of find -name, that the last names of all of them fit.
	Names []string
	// Kept: git prints them, so that its ignore files leave none of them out.
	Kept bool
	// Apart: a name with blanks, quotes or backslashes in it is taken for others.
	Apart bool
}
