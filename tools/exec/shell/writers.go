// Programs that write what they are given by name, as far as their calls were not
// understood by the other tables. What they write is listed, so that a question can
// name it; that they write nothing else is never concluded. Sources: the programs'
// manuals, those of Debian 12.

package shell

import (
	"slices"
	"strings"
)

// A writerSpec has the words of a call that name what the program writes.
type writerSpec struct {
	values string // flags whose value, the next word, is not a file that is written
	into   string // flags whose value is written
	places string // flags whose value is something that the program puts there
	which  writtenOperands
	how    Manner // the operands that are written
	only   string // one of these flags is needed; empty: none
}

type writtenOperands uint8

const (
	noOperand writtenOperands = iota
	allOperands
	firstOperand
	laterOperands // all but the first
	modeOperands  // so too, and the first may begin with a dash
	lastOperand   // the others are read
	moved         // the last too, which is where the others go
)

const output = " -o --output -out "

var writers = each(map[string]writerSpec{
	"cp ln":    {values: " -S --suffix ", into: " -t --target-directory ", which: lastOperand, how: Places},
	"mv":       {values: " -S --suffix ", into: " -t --target-directory ", which: moved},
	"install":  {values: " -m --mode -o --owner -g --group -S --suffix ", into: " -t --target-directory ", which: lastOperand, how: Places},
	"shred":    {values: " -n -s --size --iterations ", which: allOperands, how: Replaces},
	"touch":    {values: " -t -d -r --date --reference ", which: allOperands},
	"truncate": {values: " -s -r --size --reference ", which: allOperands},
	"tee":      {which: allOperands},
	"sponge":   {which: allOperands, how: Places},
	"chmod":    {which: modeOperands},
	"setfacl":  {values: " -m -x -M -X ", which: allOperands},
	"rsync": {
		values: " -e --rsh -f --filter --exclude --include --exclude-from --include-from --files-from -T --temp-dir --bwlimit --port --chmod --chown ",
		which:  lastOperand, how: Places,
	},
	"scp":        {values: " -P -i -F -S -c -J -l ", which: lastOperand, how: Places},
	"patch":      {values: " -p --strip -i --input -F -B -z -Y -g -D -r ", into: " -d --directory ", places: output, which: firstOperand, how: Replaces},
	"unzip":      {values: " -x -P ", into: " -d "},
	"zip":        {values: " -i -x ", which: firstOperand, how: Places},
	"sort":       {into: " -o --output "},
	"split":      {values: " -a -b -C -l -n -t ", which: laterOperands, how: Places},
	"curl":       {into: " -o --output --output-dir -D --dump-header -c --cookie-jar "},
	"wget":       {into: " -O --output-document -P --directory-prefix -o --output-file -a "},
	"openssl":    {into: " -out -keyout "},
	"ssh-keygen": {places: " -f "},
	"sqlite3":    {which: firstOperand, how: Places},
	"perl":       {values: " -e -E -I -M ", which: allOperands, how: Replaces, only: " -i "},
	"ruby":       {values: " -e -I -r ", which: allOperands, how: Replaces, only: " -i "},
	"gofmt":      {values: " -r ", which: allOperands, how: Replaces, only: " -w "},
	"goimports":  {values: " -local ", which: allOperands, how: Replaces, only: " -w "},
	"shfmt":      {which: allOperands, how: Replaces, only: " -w "},
	"strip":      {places: output, which: allOperands, how: Replaces},
	"go":         {places: " -o -coverprofile "},
	"cargo":      {places: " --target-dir "},
	"javac":      {into: " -d "},
	"tsc":        {places: " --outDir --outFile "},
	"esbuild":    {places: " --outfile --outdir "},
	"virtualenv": {values: " -p --python ", which: allOperands, how: Places},
	"make":       {into: " -C --directory "},
	"ninja":      {into: " -C "},
	"npm":        {into: " --prefix -C --pack-destination "},
	"cmake":      {places: " -B --prefix "},
	"pip pip3":   {places: " -t --target "},

	"chown chgrp":  {which: laterOperands},
	"mkdir mkfifo": {values: " -m --mode ", which: allOperands, how: Places},
	"rm rmdir unlink gzip gunzip bzip2 bunzip2 xz unxz dos2unix": {which: allOperands, how: Replaces},
	"sed gsed": {values: " -e --expression -f --file ", which: laterOperands, how: Replaces, only: " -i --in-place "},
	"gcc g++ cc c++ clang clang++ rustc ld pandoc": {places: output},
})

// writesOperands lists what the words of the present command name that it writes.
func (a *listing) writesOperands(words []Word) {
	name, ok := systemName(words[0].Text)
	args := words[1:]
	switch spec, known := writers[name]; {
	case !ok:
	case name == "dd":
		for _, w := range args {
			a.writesValue(Fills, w, "of=")
		}
	case name == "tar", name == "bsdtar":
		a.tarWrites(args)
	case name == "git":
		a.gitWrites(words)
	case name == "find":
		a.findWrites(args)
	case strings.HasPrefix(name, "python") && len(args) > 1 && args[0].Text == "-m" && args[1].Text == "venv":
		a.writesBy(writers["virtualenv"], args[2:])
	case known:
		a.writesBy(spec, args)
	}
}

// writesValue lists a path behind what a word begins with.
func (a *listing) writesValue(m Manner, w Word, front string) {
	if value, found := strings.CutPrefix(w.Text, front); found && w.Literal && value != "" {
		a.writeOperand(m, literalWord(value))
	}
}

func (a *listing) writesBy(spec writerSpec, args []Word) {
	var operands []Word
	put, needed := false, spec.only == ""
	for i := 0; i < len(args); i++ {
		w := args[i]
		name, _, attached := strings.Cut(w.Text, "=")
		if cluster := len(name) > 2 && name[1] != '-' && !attached; cluster && !listed(spec.into+spec.places, name[:2]) {
			name = spec.lastOf(name)
		}
		if mode := spec.which == modeOperands && strings.Trim(w.Text, "-rwxXst,") == ""; mode || !w.dashed() || w.Text == "-" {
			operands = append(operands, w)
			continue
		}
		needed = needed || listed(spec.only, name) || !strings.HasPrefix(w.Text, "--") && slices.ContainsFunc(strings.Fields(spec.only), func(flag string) bool {
			return len(flag) == len("-i") && strings.Contains(w.Text, flag[1:])
		})
		for _, kind := range []struct {
			flags string
			how   Manner
		}{{spec.into, Fills}, {spec.places, Places}} {
			if how, ok := kind.how, listed(kind.flags, name); ok && attached {
				a.writesValue(how, w, name+"=")
			} else if ok && i+1 < len(args) {
				a.writeOperand(how, args[i+1])
			} else if !ok && len(w.Text) > 2 && w.Text[1] != '-' && listed(kind.flags, w.Text[:2]) {
				a.writesValue(how, w, w.Text[:2])
			} else {
				continue
			}
			put = put || strings.HasPrefix("--target-directory", name) || name == "-t"
		}
		if !attached && listed(spec.values+spec.into+spec.places, name) {
			i++
		}
	}
	if needed {
		a.writesListed(spec, operands, put)
	}
}

// lastOf returns the flag at the end of a cluster if that takes a value, and otherwise the
// cluster.
func (spec writerSpec) lastOf(cluster string) string {
	if last := "-" + cluster[len(cluster)-1:]; listed(spec.values+spec.into+spec.places, last) {
		return last
	}
	return cluster
}

// writesListed lists those of the operands that are written. put: they go to a
// directory that a flag names.
func (a *listing) writesListed(spec writerSpec, operands []Word, put bool) {
	last := len(operands) - 1
	for i, w := range operands {
		how := spec.how
		switch spec.which {
		case noOperand:
			return
		case firstOperand:
			if i > 0 {
				return
			}
		case laterOperands, modeOperands:
			if i == 0 {
				continue
			}
		case lastOperand:
			if i < last || put || remote(w.Text) {
				continue
			}
		case moved:
			if how = Replaces; i == last && !put {
				how = Places
			}
		}
		a.writeOperand(how, w)
	}
}

// tarWrites lists the archive that a tar makes, or the directory that it unpacks into.
func (a *listing) tarWrites(args []Word) {
	makes := packs(args)
	for i := range args {
		flag := args[i].Text
		cluster := !strings.HasPrefix(flag, "--") && (strings.HasPrefix(flag, "-") || i == 0)
		switch {
		case makes && strings.HasPrefix(flag, "--file="):
			a.writesValue(Fills, args[i], "--file=")
		case !makes && strings.HasPrefix(flag, "--directory="):
			a.writesValue(Fills, args[i], "--directory=")
		case i+1 == len(args):
		case makes && (cluster && strings.HasSuffix(flag, "f") || flag == "--file"), !makes && (flag == "-C" || flag == "--directory"):
			if args[i+1].Text != "-" { // that is its output
				a.writeOperand(Fills, args[i+1])
			}
		}
	}
}

// gitOutputs are commands of git that write to the value of a flag.
var gitOutputs = map[string]writerSpec{"archive": {places: " -o --output "}, "format-patch": {places: " -o --output-directory "}}

// gitWrites lists the directory in which a git command makes a repository or a
// worktree, and what it writes elsewhere.
func (a *listing) gitWrites(words []Word) {
	if rest, _ := subcommand(words); rest != nil {
		words = rest
	}
	if len(words) < 2 || directoryFlag(words) != "" {
		return
	}
	var named []Word
	for _, w := range words[2:] {
		if w.Literal && !w.dashed() {
			named = append(named, w)
		}
	}
	a.writesBy(gitOutputs[words[1].Text], words[2:])
	switch last := len(named) - 1; {
	case words[1].Text == "clone" && last > 0, words[1].Text == "init" && last >= 0:
		a.writeOperand(Places, named[last])
	case words[1].Text == "worktree" && last > 0 && named[0].Text == "add":
		for _, w := range named[1:] {
			if strings.Contains(w.Text, "/") {
				a.writeOperand(Places, w)
				return
			}
		}
	}
}

// PutsInto reports whether the command puts something into a directory that it is given last,
// without touching the rest of it.
func (c *Command) PutsInto() bool {
	asFile := func(w Word) bool { // -T: the directory itself is written
		return strings.HasPrefix(w.Text, "--no-t") || w.dashed() && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "T")
	}
	return listed(" cp ln mv ", c.Name) && !slices.ContainsFunc(c.Words, asFile)
}

// Sweeps reports whether the command may change all that is in a directory that it is given.
func (c *Command) Sweeps() bool { return listed(" chgrp chmod chown cp mv rm ", c.Name) }

// ChangesAll reports whether the command changes all that is in a directory that it is given, what
// is protected there too.
func (c *Command) ChangesAll() bool { return listed(" chmod chown chgrp setfacl ", c.Name) }

// Spills reports whether the command, though it only reads, puts into temporary files what it
// cannot hold in memory.
func (c Command) Spills() bool { return listed(" sort tac ", base(c.Name)) }

// HasHeredoc reports whether a script may have a here-document or -string, for which bash makes a
// temporary file.
func HasHeredoc(script string) bool { return strings.Contains(script, "<<") }
