package shell

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestCommands lists what rules see: one line for each command, as
// "via> text", with ~ for a wrapper that is looked through and ? for what only
// deny and ask rules see.
func TestCommands(t *testing.T) {
	for script, want := range map[string]string{
		"npm test && rm -rf x | cat":           "npm test / rm -rf x / cat",
		"FOO=bar rm -rf tmp/":                  "rm -rf tmp/",
		"echo $(rm x) `rm y` <(rm z)":          "rm x / rm y / rm z / echo $(rm x) `rm y` <(rm z)",
		"f() { rm x; }":                        "rm x",
		"timeout 5 npm test":                   "~timeout 5 npm test / timeout> npm test",
		"nice -n 5 timeout 3 ls":               "~nice -n 5 timeout 3 ls / nice> ~timeout 3 ls / timeout> ls",
		"xargs grep a":                         "~xargs grep a / xargs> grep a / xargs> ?grep a <what xargs reads>",
		"sudo --user root --group root rm x":   "sudo --user root --group root rm x / sudo> ?rm x",
		"sudo -nHu root -g wheel rm x":         "sudo -nHu root -g wheel rm x / sudo> ?rm x",
		"env --unset A --chdir / rm x":         "env --unset A --chdir / rm x / env> ?rm x",
		"env --split-string='rm x'":            "env --split-string=rm x / env> ?env rm x / env> ?rm x",
		"env -vS'rm x'":                        "env -vSrm x / env> ?env rm x / env> ?rm x",
		"env -S '-i rm x'":                     "env -S -i rm x / env> ?env -i rm x / env> ?x / env> ?rm x",
		"flock -n /tmp/l rm x":                 "flock -n /tmp/l rm x / flock> ?rm x",
		"flock --timeout 5 /tmp/l rm x":        "flock --timeout 5 /tmp/l rm x / flock> ?rm x",
		"ionice --class 2 rm x":                "ionice --class 2 rm x / ionice> ?rm x",
		"su root -c 'rm x'":                    "su root -c rm x / su> ?rm x",
		"time -- rm x":                         "rm x",
		"xargs -0 grep a":                      "xargs -0 grep a / xargs> ?grep a / xargs> ?grep a <what xargs reads>",
		"xargs -n1 grep a":                     "xargs -n1 grep a / xargs> ?grep a / xargs> ?grep a <what xargs reads>",
		"sudo -u bob rm x":                     "sudo -u bob rm x / sudo> ?rm x",
		"env -i A=b rm x":                      "env -i A=b rm x / env> ?rm x / env> ?rm x",
		"sudo bash -c 'rm x; ls'":              "sudo bash -c rm x; ls / sudo> ?~bash -c rm x; ls / bash -c> ?rm x / bash -c> ?ls",
		"bash -c 'rm x && ls'":                 "~bash -c rm x && ls / bash -c> rm x / bash -c> ls",
		"sh -c 'rm x'":                         "~sh -c rm x / sh -c> rm x",
		"bash -c \"$x\"":                       "bash -c \"$x\"",
		"eval 'rm x' y":                        "~eval rm x y / eval> rm x y",
		"find . -exec rm {} \\; -o -ok rm a +": "find . -exec rm {} ; -o -ok rm a + / find -exec> ?rm {} / find -ok> ?rm a",
		"bash -lc 'rm x'":                      "bash -lc rm x / bash -c> ?rm x",
		"bash --rcfile f -c 'rm x'":            "bash --rcfile f -c rm x / bash -c> ?rm x",
		"bash -oc noclobber 'rm x'":            "bash -oc noclobber rm x / bash -c> ?rm x",
		"bash -euo pipefail -c 'rm x'":         "~bash -euo pipefail -c rm x / bash -c> rm x",
		"zsh -c 'rm x'":                        "zsh -c rm x / zsh -c> ?rm x",
		"/opt/bin/bash -c 'rm x'":              "/opt/bin/bash -c rm x / bash -c> ?rm x",
		"./timeout 5 rm x":                     "./timeout 5 rm x / timeout> ?rm x",
		"timeout $t rm x":                      "timeout $t rm x / timeout> ?rm x",
		"sudo timeout 5 bash -c 'rm x'":        "sudo timeout 5 bash -c rm x / sudo> ?~timeout 5 bash -c rm x / timeout> ?~bash -c rm x / bash -c> ?rm x",
		"sh -c '[[ a > b ]]'":                  "~sh -c [[ a > b ]] / sh -c> [[ a > b ]] / sh -c> [[ a ]]",
		"doas rm x":                            "doas rm x / doas> ?rm x",
		"setsid -w rm x":                       "setsid -w rm x / setsid> ?x / setsid> ?rm x",
		"ionice -c 3 rm x":                     "ionice -c 3 rm x / ionice> ?rm x",
		"flock l rm x":                         "flock l rm x / flock> ?rm x",
		"flock l -c 'rm x'":                    "flock l -c rm x / flock> ?rm x / flock> ?rm x",
		"watch -n 1 'rm x'":                    "watch -n 1 rm x / watch> ?rm x / watch> ?rm x",
		"su -c 'rm x' bob":                     "su -c rm x bob / su> ?rm x",
		"export A=$(rm x)":                     "export A=$(rm x) / rm x",
		"A=$(rm x)":                            "rm x / ",
		"{rm,-rf,x}":                           "rm -rf x",
		"[[ -f x ]] && ls":                     "[[ -f x ]] / ls",
		"t'o'uch \"a b\"":                      "touch a b",
		"cat <<EOF | sh\n$(rm x)\nEOF":         "rm x / cat / sh / sh> ?rm x / sh> ?$(rm x)",
		"ls # \\\nrm x":                        "ls rm x / ls / rm x",
		"rm x; ls )":                           "rm x",
	} {
		var got []string
		for _, c := range Analyze(script).Commands {
			line := c.String()
			if c.Transparent {
				line = "~" + line
			}
			if c.DenyOnly {
				line = "?" + line
			}
			if c.Via != "" {
				line = c.Via + "> " + line
			}
			got = append(got, line)
		}
		if line := strings.Join(got, " / "); line != want {
			t.Errorf("%s\n got  %s\n want %s", script, line, want)
		}
	}
}

func TestLiteral(t *testing.T) {
	for script, want := range map[string]string{
		"git \"push\" 'a b' $'x\\ty'": "git|push|a b|x\ty",
		"ls $x":                       "ls|($x)",
		"ls \"a$x\" *.go ~/b {a,b}":   "ls|(\"a$x\")|(*.go)|(~/b)|(a)|(b)",
		"a\\ b [ c ] d{} {}":          "a b|[|c|]|d{}|{}",
		"$x -f":                       "($x)|-f",
	} {
		c := Analyze(script).Commands[0]
		var got []string
		for _, w := range c.Words {
			if !w.Literal {
				w.Text = "(" + w.Text + ")"
			}
			got = append(got, w.Text)
		}
		if line := strings.Join(got, "|"); line != want {
			t.Errorf("%s\n got  %s\n want %s", script, line, want)
		}
		if c.Literal != c.Words[0].Literal {
			t.Errorf("%s: literal %v", script, c.Literal)
		}
	}
}

// named is a script with the paths that it names, separated by blanks.
type named struct {
	script, reads, writes string
	unlisted              bool
}

func checkPaths(t *testing.T, c named) {
	t.Helper()
	a := Analyze(c.script)
	if !slices.Equal(a.Reads, strings.Fields(c.reads)) || !slices.Equal(a.Writes, strings.Fields(c.writes)) || a.Unlisted != c.unlisted {
		t.Errorf("%s\n reads %q writes %q unlisted %v", c.script, a.Reads, a.Writes, a.Unlisted)
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []named{
		{script: "cat a /b ~/c ../d", reads: "a /b ~/c ../d"},
		{script: "cat < a > b", reads: "a", writes: "b"},
		{script: "cat <(ls) foo.txt", reads: ". foo.txt"},
		{script: "ls", reads: "."},
		{script: "cat \"$HOME/.ssh/id\" \"$PWD/x\"", reads: "~/.ssh/id ./x"},
		{script: "cat '~/x'", reads: "./~/x"},
		{script: "cat $x", unlisted: true},
		{script: "cat ~bob/x", unlisted: true},
		{script: "cat src/*.go /etc/*", reads: "src /etc"},
		{script: "cat .*/x", unlisted: true},
		{script: "cat .e* ./.en?", reads: "."},
		{script: "head src/.e* ~/.s*/x", reads: "src ~"},
		{script: "cp .e* x", reads: ".", writes: "x"},
		{script: "cat ..*", unlisted: true},
		{script: "cat */.*/x", unlisted: true},
		{script: "d=src; cat \"$d/a\" ${d}b", reads: "src/a srcb"},
		{script: "d=src; [ x ] && d=/etc; cat \"$d\"", unlisted: true},
		{script: "d=$(cat x); cat \"$d\"", reads: "x", unlisted: true},
		{script: "d=a; cd \"$d\"; cat b", reads: "a b a/b"},
		{script: "git log -L1,5:.env", reads: ". .env"},
		{script: "git show HEAD:/a :/b", reads: ". a HEAD:/a b :/b"},
		{script: "pushd x; cat a", reads: "x a x/a", unlisted: true},
		{script: "bash -n a.sh", reads: "a.sh"},
		{script: "cat */../x", unlisted: true},
		{script: "grep -r foo src", reads: "src"},
		{script: "grep -r foo", reads: "."},
		{script: "grep -f pats x", reads: "pats x"},
		{script: "grep -e a x", reads: "x"},
		{script: "rg foo", reads: "."},
		{script: "fd -e go main", reads: "."},
		{script: "fd --search-path /x main", reads: "/x ."},
		{script: "jq -f p.jq a", reads: "p.jq a", unlisted: true},
		{script: "jq -n --slurpfile a ~/.ssh/id '$a'", reads: "~/.ssh/id $a"},
		{script: "git grep --no-index x ..", reads: ". .."},
		{script: "git log -- ~/x /y", reads: ". ~/x /y"},
		{script: "ls | xargs grep a", reads: ".", unlisted: true},
		{script: "sed -n 1p a b", reads: "a b"},
		{script: "awk -F: '{print $1}' v=1 a", reads: "a"},
		{script: "find a b -name c", reads: "a b"},
		{script: "find -name c", reads: "."},
		{script: "[ -f /x ] && [[ -e /y ]]", reads: "/x /y"},
		{script: "cd src && cat a /b", reads: "src src/a /b"},
		{script: "cd src; cd ../lib; ls", reads: "src ../lib src/../lib ."},
		{script: "(cd src); cat a", reads: "src a"},
		{script: "cd $x; cat a /b", reads: "/b", unlisted: true},
		{script: "cd; cat a", reads: "~ a ~/a"},
		{script: "cp a b", reads: "a", writes: "b/a b"},
		{script: "rm -rf a /b", writes: "a /b"},
		{script: "rm $x", unlisted: true},
		{script: "mkdir -p a && touch a/b", writes: "a a/b"},
		{script: "tee o | cat", writes: "o"},
		{script: "foo a", unlisted: true},
		{script: "git diff /a/b HEAD", reads: ". /a/b HEAD"},
		{script: "echo a b"},
		{script: "ls | xargs cat", reads: ".", unlisted: true},
		{script: "sudo rm /x", writes: "/x", unlisted: true},
	} {
		checkPaths(t, c)
	}
}

func TestConcurrent(t *testing.T) {
	for script, want := range map[string]bool{
		"ls": true, "(cd src && ls)": true, "cd src && ls": false, "bash -c 'cd x; ls'": true, "eval 'cd x'": false,
		"ls $(cd x; pwd)": true, "{ cd x; ls; }": false, "touch x": false, "sleep 1": true, "x=1; echo $x": true, "x=a; cd $x": false,
	} {
		if a := Analyze(script); a.Concurrent != want {
			t.Errorf("%s: concurrent %v, reason %s", script, a.Concurrent, a.Reason)
		}
	}
}

func TestOpaque(t *testing.T) {
	for script, want := range map[string]bool{
		"rm x": false, "ls > out": false, "FOO=bar ls": false, "git push": false, "sort -o a b": false,
		"echo ${x@P}": true, "echo $((x))": true, "echo ${!x}": true, "f() { rm x; }; f": true, "f() { ls; }; f": false, "ls() { pwd; }; ls": true, "[[ -v 'a[1]' ]]": true,
		"eval \"$x\"": true, "bash -c \"$x\"": true, "ls )": true, "for PATH in .; do ls; done": true,
	} {
		if a := Analyze(script); (!a.Opaque.Empty()) != want {
			t.Errorf("%s: opaque %q", script, a.Opaque)
		}
	}
}

func TestReason(t *testing.T) {
	for script, want := range map[string]string{
		"sort -o out in":            "`sort -o out in`: -o writes a file",
		"ls && sort --out=x y":      "`sort --out=x y`: --out may be --output, which writes a file",
		"cd src && ls":              "`cd`: the working directory changes",
		"ls > out":                  "`> out`: it writes a file",
		"frob x":                    "`frob x`: `frob` is not among the programs known to be harmless",
		"find $x":                   "`find $x`: `$x` may become a flag or an action",
		"git log --show-signature":  "`git log --show-signature`: --show-signature runs the signature program",
		"x=1; x=2":                  "`x=1; x=2`: it only sets variables, perhaps for a later command",
		"FOO=1; ls":                 "`FOO=1`: the variable may mean something to what runs later; a name in lower case does not",
		"ls":                        "",
		"sudo rm x":                 "`sudo rm x`: it runs another command in its own way, which only a rule for `sudo` itself can allow",
		"ls | xargs -n1 rm":         "`rm`: a word that xargs reads and appends may become a flag",
		"ls | xargs -o rm":          "`xargs -o rm`: which commands `xargs` makes with these flags is not followed",
		"find . -exec rm {} +":      "`rm {}`: it writes files",
		"find . -delete":            "`find . -delete`: -delete removes what is found",
		"zsh -c 'rm x'":             "`zsh -c 'rm x'`: zsh reads other files first and has another grammar",
		"npm --version x":           "`npm --version x`: nothing that `npm` does is known to only read, but for telling its version",
		"cargo --version":           "`cargo --version`: even to tell its version it may first fetch or run what a rust-toolchain file names",
		"sort $x":                   "`sort $x`: `$x` may become a flag",
		"openssl x509 -in a -out b": "`openssl x509 -in a -out b`: `-out` is not among the flags of `x509` known to be harmless",
		"tar xf a":                  "`tar xf a`: only `tar tf FILE`, with v, z, j or J, is known to only read",
		"printf -v PATH y":          "`printf -v PATH y`: it sets `PATH`, which may mean something to a program; a name in lower case does not",
		"read PATH":                 "`read PATH`: it sets `PATH`, which may mean something to a program; a name in lower case does not",
		"git -C x log":              "`git -C x log`: -C leads to another repository and its settings",
		"mapfile -C id x":           "`mapfile -C id x`: -C is not among its flags known to be harmless",
		"kill 1":                    "`kill 1`: it signals a process, perhaps to end it",
		"shopt -s extglob":          "`shopt -s extglob`: it changes how the shell reads or finds commands",
	} {
		if got := Analyze(script).Reason.String(); got != want {
			t.Errorf("%s\n got  %s\n want %s", script, got, want)
		}
	}
}

func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   error
		sees   string // still listed for deny rules
	}{
		"long":      {"rm x; echo " + strings.Repeat("a", maxLength), ErrTooLong, "rm x"},
		"huge":      {"rm x; echo " + strings.Repeat("a", maxParsed), ErrTooLong, ""},
		"many":      {strings.Repeat("ls;", maxCommands) + "rm x", ErrTooMany, "rm x"},
		"deep":      {strings.Repeat("{ ", maxDepth+1) + "rm x" + strings.Repeat("; }", maxDepth+1), ErrTooDeep, "rm x"},
		"open":      {strings.Repeat("(", maxOpen+1), ErrTooDeep, ""},
		"scripts":   {strings.Repeat("nice ", maxScripts+2) + "ls", ErrTooDeep, ""},
		"syntax":    {"rm x\nls )", ErrNotShell, "rm x"},
		"inner":     {"bash -c 'rm x; ls )'", ErrNotShell, "rm x"},
		"branching": {strings.Repeat("sudo -x ", 1000) + "rm x", ErrTooDeep, ""},
	} {
		a := Analyze(c.script)
		if !errors.Is(a.Err, c.want) || a.ReadOnly {
			t.Errorf("%s: %v, read-only %v", name, a.Err, a.ReadOnly)
		}
		seen := slices.ContainsFunc(a.Commands, func(cmd Command) bool { return cmd.String() == c.sees })
		if c.sees != "" && !seen {
			t.Errorf("%s: %q is not listed", name, c.sees)
		}
		checkConsistent(t, name, a)
	}
}

func TestLast(t *testing.T) {
	for script, want := range map[string]string{
		"grep a b": "grep", "cat f | grep a": "grep", "cd src && grep a b": "grep", "grep a b || true": "true",
		"grep a b; rm x": "rm", "! grep a b": "", "grep a b &": "", "/usr/bin/grep a b": "grep", "timeout 5 grep a b": "grep",
		"bash -c 'grep a b'": "grep", "(grep a b)": "grep", "{ ls; grep a b; }": "grep", "if true; then grep a b; fi": "",
		"git grep x": "git grep", "git diff --exit-code": "git diff", "git --no-pager diff": "git diff", "[ -f x ]": "[",
		"[[ -f x ]]": "[[", "jq -e .a f": "jq -e", "jq .a f": "jq", "command -v x": "command -v", "xargs grep x": "",
		"set -o pipefail; foo | grep x": "", "find . -name x": "find", "$x": "", "time grep a b": "grep", "grep a b )": "",
	} {
		if got := Analyze(script).Last; got != want {
			t.Errorf("%s: last %q, want %q", script, got, want)
		}
	}
}

func TestBenign(t *testing.T) {
	for _, c := range []struct {
		last    string
		code    int
		printed int64
		want    string
		ok      bool
	}{
		{"grep", 1, 0, "no match", true},
		{"grep", 2, 0, "", false},
		{"git diff", 1, 10, "they differ", true},
		{"[", 1, 0, "false", true},
		{"find", 1, 10, "some directories could not be read", true},
		{"find", 1, 0, "some directories could not be read", false},
		{"jq", 1, 0, "", false},
		{"", 1, 0, "", false},
		{"rm", 1, 0, "", false},
		{"grep", 0, 0, "", false},
	} {
		if got, ok := Benign(c.last, c.code, c.printed); got != c.want || ok != c.ok {
			t.Errorf("Benign(%q, %d, %d) = %q, %v", c.last, c.code, c.printed, got, ok)
		}
	}
}
