// find, whose arguments are paths and then an expression. Source: find(1) of
// findutils 4.9. The list of tests is closed; an action that writes or runs
// is not in it.

package shell

import "strings"

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

func (a *analyzer) find(args []Word) string {
	paths, why := 0, ""
	for i := 0; i < len(args); i++ {
		w := args[i]
		named := w.shape == known && len(w.prefix) > 0 && strings.IndexByte("-!(),", w.prefix[0]) >= 0
		switch {
		case named && listed(findTests, w.prefix):
		case named && listed(findValues, w.prefix):
			i++
			if _, bad := valueWord(args, i, w.prefix); bad != "" {
				why = bad
			}
		case named:
			why = w.prefix + " is not among its tests known to be harmless"
			if listed(findRuns, w.prefix) {
				a.denied("find "+w.prefix, untilEnd(args[i+1:]))
				why = w.prefix + " runs a program"
			}
		case w.shape == known, w.solid && w.shape < many:
			paths++
			a.look(w)
		default:
			why = "`" + w.Text + "` may become an action"
		}
	}
	if paths == 0 {
		a.read(".")
	}
	return why
}

// listed reports whether a list that is separated by blanks holds s.
func listed(list, s string) bool {
	return !strings.Contains(s, " ") && strings.Contains(list, " "+s+" ")
}

// untilEnd are the words of an -exec.
func untilEnd(args []Word) []Word {
	for i, w := range args {
		if w.prefix == ";" || w.prefix == "+" {
			return args[:i]
		}
	}
	return args
}
