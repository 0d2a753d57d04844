// What a command may run that is in no table: the words of a program that is not in
// any, or that was asked for more than its table has, what such a program reads, and
// the values of variables. They are listed as texts.

package shell

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// plainPrograms are programs that are in no other table and take names, texts and
// addresses, but no programs, in the words that they are commonly given.
const plainPrograms = " apt apt-get aptitude dnf yum zypper apk pacman brew port pip pip3 gem cargo curl wget http https" +
	" aria2c gh glab hub gcc g++ cc c++ clang clang++ ld ar ranlib nm strip javac tsc rustc ghc protoc" +
	" buf shellcheck shfmt eslint prettier black ruff mypy flake8 pylint isort gofmt goimports gofumpt" +
	" golangci-lint staticcheck rustfmt clang-format ffmpeg ffprobe convert magick identify zip unzip" +
	" gzip gunzip bzip2 xz zstd install dd truncate kill pkill killall mount umount useradd usermod aws" +
	" gcloud az gsutil terraform helm redis-cli ssh-keygen ssh-add logger notify-send say systemctl" +
	" service journalctl dpkg rpm go pytest jest vitest twine svn hg jj "

// ownJudges are judged by code of their own.
const ownJudges = " git find fd fdfind sed gsed awk gawk mawk nawk xargs bash sh dash zsh ksh set source . trap alias eval "

// inTables: what the program does with its words is known, at least with those that are
// commonly used.
func inTables(name string) bool {
	if p, ok := lookup(name); ok && !p.only {
		return true
	}
	_, wraps := wrapped[name]
	_, carries := wrappers[name]
	return wraps || carries || subcommands[name] != nil || strings.HasPrefix(name, "git-") ||
		listed(plainPrograms, name) || listed(ownJudges, name)
}

// mayRun notes that any of the words may be the name of a program that the present
// command runs, or a text that has one in it, and so may what it reads.
func (a *judge) mayRun(args []Word) {
	if a.current == noCommand || !a.walk(0) {
		return
	}
	c := a.present()
	for _, w := range args {
		c.MayRun = append(c.MayRun, w.Text)
	}
	if f := a.stdin; f != nil && !f.noted { // the first that may run it stands for all
		f.noted = true
		if text, _ := a.ask(f); text != "" && a.walkText(text) {
			c.MayRun = append(c.MayRun, text)
		}
	}
}

// valuesMayRun notes the values of assignments that are not harmless.
func (a *findings) valuesMayRun(assigns []assign) {
	c := a.present()
	for _, as := range assigns {
		if !as.harmless && as.value.Text != "" {
			c.MayRun = append(c.MayRun, as.value.Text)
		}
	}
}

// maxFedWords bounds how many words of what a command reads are noted.
const maxFedWords = 256

// fedWords notes what the present command reads, where what it does with that is
// unknown: to some programs they are names of files.
func (a *judge) fedWords(name string) {
	f := a.stdin
	if f == nil || f.listed || listed(" bash sh dash zsh ksh xargs cat tee ", name) {
		return
	}
	f.listed = true // the first that it is not known of stands for all
	if text, _ := a.ask(f); a.walkText(text) {
		words := strings.Fields(withoutQuotes.Replace(text))
		a.present().Fed = words[:min(len(words), maxFedWords)]
	}
}

// renames notes what `hash -p FILE NAME` makes of a name.
func (a *environment) renames(args []Word) {
	flag := func(w Word) bool { return w.dashed() && strings.Contains(w.Text, "p") }
	at := slices.IndexFunc(args, flag)
	if at < 0 {
		return
	}
	target, names := strings.TrimLeft(args[at].Text, "-lrtd")[1:], args[at+1:]
	if target == "" && len(names) > 0 {
		target, names = names[0].Text, names[1:]
	}
	for _, w := range names {
		if a.renamed == nil {
			a.renamed = map[string]string{}
		}
		a.renamed[w.Text] = target
	}
}

// maxNames bounds how many words of one command may name programs.
const maxNames = 5_000

// MayRunNames returns the words in MayRun that may name a program or be one of its words, in
// whatever language the texts are, at most 5,000. A path to where programs are goes by its last
// name.
func (c *Command) MayRunNames() (names []string) {
	between := func(c rune) bool {
		return c < 0x80 && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-./+", c)
	}
	for _, text := range c.MayRun {
		for name := range strings.FieldsFuncSeq(text, between) {
			if len(names) == maxNames {
				return names
			}
			if dir := path.Base(path.Dir(name)); strings.Contains(name, "/") && (dir == "bin" || dir == "sbin" || dir == ".") {
				name = path.Base(name)
			}
			names = append(names, name)
		}
	}
	return names
}
