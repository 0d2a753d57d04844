// What the programs of the table read by themselves, beside what their words
// name: the user's own configuration, and more than any list of places holds. To be
// checked against the manual pages that the other tables name, and against strace.

package shell

import "strings"

// gitFiles are git-config(1), gitignore(5) and gitattributes(5).
const gitFiles = "~/.gitconfig $XDG_CONFIG_HOME/git/config $XDG_CONFIG_HOME/git/ignore $XDG_CONFIG_HOME/git/attributes"

// configuration is what a program reads of the user's own configuration.
//
// Absent on purpose: what holds credentials (~/.npmrc, ~/.netrc, ~/.config/gh,
// ~/.docker/config.json), without which these programs tell their version too.
var configuration = each(map[string]string{
	"git rg":    gitFiles, // rg and fd leave out what git ignores
	"fd fdfind": gitFiles + " $XDG_CONFIG_HOME/fd/ignore",
	"jq":        "~/.jq",
	"file":      "~/.magic ~/.magic.mgc",
	"go gofmt":  "$XDG_CONFIG_HOME/go/env",
	"curl":      "~/.curlrc $XDG_CONFIG_HOME/curlrc",
	"wget":      "~/.wgetrc",
	"less":      "~/.less ~/.lesskey $XDG_CONFIG_HOME/lesskey ~/.terminfo",
	"tput":      "~/.terminfo",
	"tmux":      "~/.tmux.conf $XDG_CONFIG_HOME/tmux/tmux.conf",
	"sqlite3":   "~/.sqliterc $XDG_CONFIG_HOME/sqlite3/sqliterc",
})

// Configuration returns the files of the user's own configuration that a
// program of the table reads by itself. Each begins with ~ or with
// $XDG_CONFIG_HOME; a directory stands for all below it. The files of git name
// more files.
func Configuration(name string) []string {
	name, ok := systemName(name)
	if !ok {
		return nil
	}
	return strings.Fields(configuration[name])
}

// wide are programs that read what no list of places holds: processes and what
// the kernel shows to each of them, the state of the system below /run and
// /var, or packages and toolchains wherever they were installed.
const wide = " ps pgrep pidof pstree top lsof fuser free w vmstat iostat" +
	" df findmnt mount lsblk lscpu lsmod lsusb ss netstat ip ifconfig hostname who users uptime" +
	" dpkg dpkg-query lsb_release pip pip3 go npm gh "

// ReadsWidely reports whether a program of the table reads more than its words
// and its configuration name, so that it needs to see all that may be seen.
func ReadsWidely(name string) bool {
	name, ok := systemName(name)
	return ok && listed(wide, name)
}

// builtins are those of bash(1) 5.2, and the keywords by which compound tests
// are listed.
const builtins = " : . [ [[ (( alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo" +
	" enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd" +
	" read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait "

// LooksAround reports whether a program of the table, even asked for a version or a
// setting, may run another version of itself that the workspace names, ask the network
// for a newer one, or keep a log: only where it is confined does it just read.
func LooksAround(name string) bool { return listed(" go npm gh ", base(name)) }

// Searched reports whether the command is looked for along PATH. Another shell that runs it has the
// same builtins.
func (c Command) Searched() bool {
	return c.Literal && !c.Function && c.Name != "" && !strings.Contains(c.Name, "/") && (!listed(builtins, c.Name) || c.SearchedByProgram() && !strings.HasSuffix(c.Via, " -c"))
}

// SearchedByProgram reports whether not the shell that runs the script looks for the
// command but a program that it starts.
func (c Command) SearchedByProgram() bool {
	return !listed(" eval command builtin expansion ", c.Via) && c.Via != ""
}
