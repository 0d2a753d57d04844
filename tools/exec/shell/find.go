// find, whose arguments are paths and then an expression. Source: find(1) of
// findutils 4.9. The list of tests is closed; an action that writes or runs
// is not in it.

package shell

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// findTests take no value, findValues one.
const (
	findTests = " --version -version --help -help ! ( ) , -a -o -and -or -not -print -print0 -ls -prune -quit -true -false -empty -depth -d -mount -xdev -daystart" +
		" -follow -nouser -nogroup -readable -writable -executable -ignore_readdir_race -noignore_readdir_race -nowarn -warn -noleaf" +
		" -H -L -P -O0 -O1 -O2 -O3 -E -X -x -s "
	findValues = " -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -atime" +
		" -ctime -mmin -amin -cmin -newer -anewer -cnewer -newermt -newerat -newerct -newerBt -neweram -newerma -perm -user -group" +
		" -uid -gid -links -inum -samefile -maxdepth -mindepth -regextype -fstype -used -printf -context "
	findRuns = " -exec -execdir -ok -okdir "
)

func (a *judge) find(args []Word) string {
	var starts []Word
	why, names := "", sync.OnceValue(func() []string { return findNames(args) })
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !a.walk(1) {
			return ErrTooInvolved.Error()
		}
		named := w.shape == known && len(w.prefix) > 0 && strings.IndexByte("-!(),", w.prefix[0]) >= 0
		switch {
		case named && listed(findTests, w.prefix):
		case named && listed(findValues, w.prefix):
			i++
			if _, bad := valueWord(args, i, w.prefix); bad != "" {
				why = bad
			}
		case named && w.prefix == "-exec" && a.execEnd(args[i+1:]) > 0:
			end := i + 1 + a.execEnd(args[i+1:])
			before := len(a.out.Commands)
			if bad := a.findRuns(args[i+1:end], starts); bad != "" {
				why = bad
			} else if len(names()) > 0 {
				a.takesFound(before, namedFiles{starts: startsOr(starts), picks: Picks{Names: names()}})
			}
			i = end
		case named:
			if why = findDoes(w.prefix); listed(findRuns, w.prefix) {
				a.denied("find "+w.prefix, a.untilEnd(args[i+1:]))
			}
		case slices.ContainsFunc(w.texts, func(t text) bool { return t.prefix != "" && strings.IndexByte("!(),", t.prefix[0]) >= 0 }):
			why = w.named() + " may become a part of the expression"
		case w.shape == known, w.solid && w.shape < many:
			starts = append(starts, w)
			a.look(w)
		default:
			why = w.named() + " may become a flag or an action"
		}
	}
	if len(starts) == 0 {
		a.read(".")
	}
	return why
}

// findDoes is the reason against what is not among the tests.
func findDoes(action string) string {
	switch {
	case listed(findRuns, action):
		return action + " runs a program"
	case action == "-delete":
		return "-delete removes what is found"
	case strings.HasPrefix(action, "-fprint") || action == "-fls":
		return action + " writes a file"
	}
	return action + " is not among its tests and actions known to be harmless"
}

// acts reports whether a word is an action by which find runs, removes or writes.
func acts(word string) bool {
	return listed(findRuns, word) || listed(" -delete -fprint -fprint0 -fprintf -fls ", word)
}

// findWrites lists where a find removes files, and the files that it prints into. It removes
// where it starts too unless a test leaves that out; "." it never removes.
func (a *listing) findWrites(args []Word) {
	for len(args) > 0 && listed(" -H -L -P ", args[0].Text) {
		args = args[1:]
	}
	first := slices.IndexFunc(args, func(w Word) bool { return w.Text != "" && strings.IndexByte("-!(),", w.Text[0]) >= 0 })
	if first < 0 {
		return
	}
	removes, how := false, Replaces
	for i, w := range args[first:] {
		value := Word{}
		if rest := args[first+i+1:]; len(rest) > 0 {
			value = rest[0]
		}
		switch {
		case w.Text == "-delete":
			removes = true
		case listed(" -name -iname -mindepth ", w.Text), w.Text == "-type" && value.Text != "d":
			how = Fills
		case strings.HasPrefix(w.Text, "-fprint"), w.Text == "-fls":
			a.writeOperand(Fills, value)
		}
	}
	for _, start := range startsOr(args[:first]) {
		switch {
		case !removes:
		case start.Literal && path.Clean(start.Text) == ".":
			a.writeOperand(Fills, start)
		default:
			a.writeOperand(how, start)
		}
	}
}

// listed reports whether a list that is separated by blanks holds s.
func listed(list, s string) bool {
	return !strings.Contains(s, " ") && strings.Contains(list, " "+s+" ")
}

// untilEnd are the words of an -exec.
func (a *listing) untilEnd(args []Word) []Word {
	for i, w := range args {
		if w.prefix == ";" || w.prefix == "+" || !a.walk(1) {
			return args[:i]
		}
	}
	return args
}

// execEnd is how many words an -exec has in front of its end, and 0 where that
// is not certain: a plus sign ends it only behind the name of a file.
func (a *listing) execEnd(args []Word) int {
	for i, w := range args {
		switch {
		case w.shape != known, !a.walk(1):
			return 0
		case w.prefix == ";", w.prefix == "+" && i > 0 && args[i-1].prefix == "{}":
			return i
		}
	}
	return 0
}

// findRuns judges the command of an -exec with what is found as its files: they
// lie below the places where find starts, and their names begin with these.
func (a *judge) findRuns(words, starts []Word) (why string) {
	starts = startsOr(starts)
	var filled []Word
	certain := true
	for _, w := range words {
		if w.prefix != "{}" {
			filled = append(filled, w)
			certain = certain && !strings.Contains(w.prefix, "{}")
			continue
		}
		if !a.walk(len(starts)) {
			break
		}
		for _, start := range starts {
			found := Word{Text: "{}", shape: files, prefix: start.prefix, solid: start.solid, path: start.path, more: start.more}
			certain = certain && found.path != "" && found.solid && !slices.ContainsFunc(found.paths(), busyPlace)
			filled = append(filled, found)
		}
	}
	if !certain {
		a.denied("find -exec", words)
		return "-exec runs a program on files whose names are not certain"
	}
	a.beside(func() { a.inner("find -exec", filled) })
	return ""
}

// startsOr are where find starts.
func startsOr(starts []Word) []Word {
	if len(starts) == 0 {
		return []Word{literalWord(".")}
	}
	return starts
}

// busyPlace: files there can be more than files, however deep they lie.
func busyPlace(p string) bool {
	p = path.Clean(p)
	return p == "/" || strings.HasPrefix(p+"/", "/dev/") || strings.HasPrefix(p+"/", "/proc/") || strings.HasPrefix(p+"/", "/sys/") || strings.HasPrefix(p+"/", "/run/")
}
