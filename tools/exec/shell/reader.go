// Programs that read or copy their operands, where a call of them was not understood:
// an unknown word may be any file then.

package shell

import (
	"slices"
	"strings"
)

// otherReaders read or copy what they are given, beside those of the tables.
const otherReaders = " less more most bat batcat view zcat zless zmore zgrep bzgrep xzgrep lz4 zstd zstdcat bzip2 source . install rsync scp tar zip 7z bsdtar cpio ar" +
	" dd openssl gpg enscript a2ps vi vim nvim nano emacs ed ex split csplit uuencode mail mutt sponge pandoc envsubst ack ag dos2unix yq "

// noReaders are programs of the tables whose operands are not files, or are not read.
const noReaders = " tr numfmt seq touch mkdir rmdir rm tee truncate ls dir stat du df tree basename dirname realpath readlink pwd which whereis type namei pathchk dpkg dpkg-query fd fdfind "

// gitReaders are commands of git that show what an operand names.
const gitReaders = " show cat-file blame annotate diff grep archive hash-object "

// readsUnknown marks the present command, which was not understood, if it reads or
// copies operands and one of them is unknown.
func (a *listing) readsUnknown(words []Word) {
	name, args := base(words[0].Text), words[1:]
	_, text := textPrograms[name]
	_, file := filePrograms[name]
	skip := 0 // of words that are not flags: scripts are not files
	switch {
	case name == "sed", name == "gsed", name == "awk", name == "gawk", name == "mawk", name == "nawk":
		skip = 1
		if slices.ContainsFunc(args, givesScript) {
			skip = 0
		}
	case name == "git":
		rest, _ := subcommand(words)
		if rest == nil {
			rest = words
		}
		if len(rest) < 2 || !listed(gitReaders, rest[1].Text) {
			return
		}
		args = rest[2:]
	case name == "curl":
		a.sendsUnknown(args)
		return
	case !(text || file) && !listed(otherReaders, name), listed(noReaders, name):
		return
	}
	for i, w := range args {
		script := i > 0 && args[i-1].Literal && givesScript(args[i-1])
		switch {
		case strings.HasPrefix(w.prefix, "-") && len(w.prefix) > 1, script:
		case skip > 0:
			skip--
		case !w.Literal && !w.pipe && w.path == "" && w.shape != known:
			a.vague()
		}
	}
}

// givesScript: a flag of sed or awk in front of its script, or in front of a word that is not one
// of its files.
func givesScript(w Word) bool { return w.Text == "-e" || w.Text == "--expression" || w.Text == "-v" }

// sendsUnknown marks a curl that sends a file which is not known.
func (a *listing) sendsUnknown(args []Word) {
	for i, w := range args {
		before := ""
		if i > 0 {
			before = args[i-1].Text
		}
		flag := w.prefix
		if !strings.HasPrefix(flag, "-") {
			flag = before
		}
		sends := listed(" -T --upload-file -K --config -d --data --data-binary --data-ascii --data-urlencode --json -F --form -E --cert --key ", strings.SplitN(flag, "=", 2)[0])
		attached := len(w.prefix) >= 2 && strings.Contains("-T-K-d-F-E", w.prefix[:2])
		file := listed(" -T --upload-file -K --config -E --cert --key ", flag) || strings.Contains(w.prefix, "@") || w.prefix == ""
		if w.shape != known && !w.Literal && (sends || attached) && file {
			a.vague()
		}
	}
}
