package damage_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/tools/exec/shell"
	"github.com/toold/toold/tools/exec/shell/damage"
)

// find only parses the command; it does not run.
func find(command string, around damage.Around) string {
	found := shell.Analyze(command)
	return damage.Find(found.Commands, found.Writes, around)
}

// TestFind holds two lists of commands against the function: those that could destroy more than a workspace, and
// those of every day, of which none may be taken for such.
func TestFind(t *testing.T) {
	t.Parallel()
	around := damage.Around{Dir: "/home/u/work/app/sub", Home: "/home/u", Roots: []string{"/home/u/work/app"}}
	for file, want := range map[string]bool{"testdata/critical.txt": true, "testdata/everyday.txt": false} {
		list, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for command := range strings.Lines(string(list)) {
			command = strings.TrimSuffix(command, "\n")
			if got := find(command, around); (got != "") != want {
				t.Errorf("%s: %q, want damage %v", command, got, want)
			}
		}
	}
}

// In a root itself, what stands for everything in it is the root.
func TestFindInARoot(t *testing.T) {
	t.Parallel()
	around := damage.Around{Dir: "/w/app", Home: "/home/u", Roots: []string{"/w/app"}}
	for command, want := range map[string]bool{
		"rm -rf *": true, "rm -rf ./*": true, "rm -rf $PWD": true, "rm -rf .": true, "rm -rf ..": true, "rm -rf .*": true, "rm -rf **/*": true,
		"ls | xargs rm -rf": true, "find . -delete": true, "find -delete": true, "chmod -R 777 .": true, "chown -R me:me ./": true,
		"git add . && rm -rf .[!.]*": true, "rsync -a --delete dist/ .": true, "cd sub; rm -rf *": true, "cd sub && rm -rf *": false, "cd sub && cd .. && rm -rf *": true,
		`X=build; rm -rf "$X/"`: false, `for d in a b; do rm -rf "$d/x"; done`: false, `for d in *; do rm -rf "$d"; done`: true,
		"rm -rf build/*": false, "rm *.o": false, "rm -rf .next*": false, "find . -name x -delete": false, "find . -type f -exec chmod 644 {} +": false,
		`x=a; x[0]=/; rm -rf "$x"`: true, "rm -rf ${ echo /; }": true, "rm -rf $[1+1]": false, "rm -rf $((1+1))": false,
		"mv * sub/": false, "mv ./* sub/": false, "ls *.o | xargs rm": false, "chmod -R u+w src": false, "rm -rf $X": false,
	} {
		if got := find(command, around); (got != "") != want {
			t.Errorf("%s: %q, want damage %v", command, got, want)
		}
	}
}

// TestFindEnvironment: what the client or an earlier call has put into the environment is what variables hold.
func TestFindEnvironment(t *testing.T) {
	t.Parallel()
	around := damage.Around{
		Dir: "/home/u/work/app/sub", Home: "/home/u", Roots: []string{"/home/u/work/app"},
		Environ: []string{"HOME=/home/u", "X=/usr", "Y=/", "Z=a /usr", "D=build", "E=", "OLDPWD=/", "TMPDIR=/tmp", "YY=x"},
	}
	for command, want := range map[string]bool{
		`rm -rf "$X"`: true, "rm -rf $Y": true, "cd $Y && rm -rf usr": true, "cd - && rm -rf usr": true, "rm -rf $Z": true, "chmod -R 777 ${X}": true,
		"find $Y -delete": true, `bash -c "rm -rf $X"`: true, `rm -rf "$(echo $X)"`: true, "echo $X | xargs rm -rf": true,
		"X=build; rm -rf $X": false, `rm -rf "$Z"`: false, `rm -rf "$D"`: false, "rm -rf $E": false, "cd $D && rm -rf *": false, `rm -rf "${TMPDIR:?}"/*`: false, `rm -rf "${TMPDIR:-/tmp}/x"`: false,
		"ls $Y": false, "rm -rf $YY": false, "rm -rf '$X'": false, `rm -rf "out/$X"`: false, "cd $X && ls": false,
	} {
		if got := find(command, around); (got != "") != want {
			t.Errorf("%s: %q, want damage %v", command, got, want)
		}
	}
}

// TestFindBounds: what is beyond a bound of what is followed is not taken for harmless, where it is for something
// that removes, changes modes or writes to disks, and there alone.
func TestFindBounds(t *testing.T) {
	t.Parallel()
	around := damage.Around{Dir: "/w/team/app", Home: "/home/u", Roots: []string{"/w/team/app"}}
	var values, dirs, names strings.Builder
	for i := range 40 {
		fmt.Fprintf(&values, "make && X=a%d; ", i)
		fmt.Fprintf(&dirs, "cd /srv/%[1]d/x%[1]d; cd ../../%[1]d; ", i)
	}
	for i := range 70 {
		fmt.Fprintf(&dirs, "cd %s; ", strings.Repeat("d/", i+1))
	}
	for name := range strings.SplitSeq("A B C D E F G", " ") {
		fmt.Fprintf(&names, "%[1]s=x; make && %[1]s=y; ", name)
	}
	nested := strings.Repeat("$(echo ", 12) + "x" + strings.Repeat(")", 12)
	long := `"` + strings.Repeat("$A", 2100) + `/usr"`
	for before, commands := range map[string][2][]string{ // beyond a bound, and not
		values.String(): {{`rm -rf "$X"`, "chmod -R 755 $X", "dd if=x of=$X", "cd $X; rm -rf x"}, {"rm -rf build", "rm -rf $Y", `echo "$X"`, "make $X"}},
		dirs.String():   {{"rm -rf build", "chmod -R 755 .", "mkfs.ext4 disk.img", "find . -delete"}, {"rm -rf /tmp/x", "rm -rf ~/.cache/x", "make", "ls *"}},
		names.String():  {{"rm -rf $A$B$C$D$E$F$G", "X=$A$B$C$D$E$F$G; rm -rf $X"}, {"rm -rf $A", "rm -rf $A$B", "echo $A$B$C$D$E$F$G"}},
		"A=; B=; ":      {{"rm -rf " + long, "rm -rf " + nested, "X=" + nested + "; rm -rf $X"}, {"echo " + long, "echo " + nested}},
		"X=1; ":         {{`bash -c "` + strings.Repeat("a;", 501) + `$X"`}, {`bash -c "` + strings.Repeat("a;", 100) + `$X"`}},
	} {
		for i, list := range commands {
			for _, command := range list {
				if got := find(before+command, around); (got != "") != (i == 0) {
					t.Errorf("%.40s... %.60s: %q, want it to be beyond the bounds: %v", before, command, got, i == 0)
				}
			}
		}
	}
}

// TestFindText: what is said is a sentence that names the command and what it would reach.
func TestFindText(t *testing.T) {
	t.Parallel()
	around := damage.Around{Dir: "/w/app", Home: "/home/u", Roots: []string{"/w/app"}}
	for command, want := range map[string]string{
		"rm -rf /":           "`rm -rf /` would remove /.",
		"cd / && rm -rf etc": "`rm -rf etc` would remove /etc, a child of /.",
		`rm -rf "$X/"`:       "`rm -rf \"$X/\"` would reach / if the variable that \"$X/\" begins with is empty.",
		"rm -rf ~/$X":        "`rm -rf ~/$X` would remove the home directory if a variable in ~/$X is empty.",
		"chmod -R 777 /usr":  "`chmod -R 777 /usr` would change all of /usr, a child of /.",
		"cat x > /dev/sda":   "It writes to /dev/sda, which may be a block device.",
		"reboot":             "`reboot` ends the whole system.",
		"rm -rf *":           "`rm -rf *` would remove everything in a root of the workspace.",
		"rm -rf /w":          "`rm -rf /w` would remove /w, which holds a root of the workspace.",
	} {
		if got := find(command, around); got != want {
			t.Errorf("%s:\n got %s\nwant %s", command, got, want)
		}
	}
}

// TestFindInvolved: where a script cannot be followed to its end, what it removes counts as damage.
func TestFindInvolved(t *testing.T) {
	t.Parallel()
	around := damage.Around{Dir: "/w/app", Home: "/home/u", Roots: []string{"/w/app"}}
	for _, script := range []string{
		strings.Repeat("cd a; ", 1600) + "rm -rf b",
		strings.Repeat("bash -c \"find $x"+strings.Repeat(" -exec find .", 50)+"\"; ", 14),
	} {
		if why := find(script, around); !strings.Contains(why, "too involved") {
			t.Errorf("%.60s: %q", script, why)
		}
	}
}

// FuzzFind: no script makes it panic, or take time without end.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{`rm -rf "${X:-${Y:=/}}/$(pwd)"`, "eval \"rm -rf $X\"", "echo ~ | sudo xargs -n1 rm $'\\x2f'", "rm ${", "rm $(", "cd `", "env -C / rm x", "X=$X$X$X; rm $X"} {
		f.Add(seed)
	}
	doubling := "v0=abcdefgh"
	for i := range 60 {
		doubling += fmt.Sprintf("; v%d=$v%d$v%d$v%d", i+1, i, i, i)
	}
	f.Add(doubling + "; rm $v60")
	f.Fuzz(func(_ *testing.T, script string) {
		find(script, damage.Around{Dir: "/w/app", Home: "/home/u", Roots: []string{"/w/app"}})
	})
}
