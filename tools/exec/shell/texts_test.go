package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestSpelled looks at the last word of the last command as written.
func TestSpelled(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`X=build; rm -rf "$X/"`:                                                `build/`,
		`for d in a 'b c'; do rm "$d/x"; done`:                                 `a/x b\ c/x`,
		`for d in a b; do for e in 1 2; do rm "$d$e"; done; done`:              `a1 a2 b1 b2`,
		`for f in src/*; do rm "$f"; done`:                                     `src/*`,
		`for f in ~/x '~'; do rm "$f"; done`:                                   `~/x \~`,
		`rm "$HOME/x"`:                                                         `~/x`,
		`x='*'; rm "$x"`:                                                       `\*`,
		`x=; rm -rf "$x/"`:                                                     ``,
		`x=""; rm -rf "$x/"`:                                                   `/`,
		`rm -rf "$x/"`:                                                         ``,
		`x=$1; rm -rf "$x/"`:                                                   ``,
		`x=a; read -r x; rm -rf "$x/"`:                                         ``,
		`x=a; if ls; then x=; fi; rm -rf "$x/"`:                                ``,
		`x=a; ls || x=; rm -rf "$x/"`:                                          ``,
		`ls && x=a; rm -rf "$x/"`:                                              ``,
		`x=a; unset x; rm -rf "$x/"`:                                           ``,
		`x=a; make; rm -rf "$x/"`:                                              `a/`,
		`readonly x=/; x=a; rm -rf "$x"`:                                       ``,
		`for i in 1 2; do rm -rf "$x/"; x=a; done`:                             ``,
		`x=a; for i in 1 2; do rm -rf "$x/"; x=; done`:                         ``,
		`x=a; while ls; do rm -rf "$x/"; eval "$y"; done`:                      ``,
		`x=a; while ls; do for i in 1; do rm -rf "$x/"; done; read -r x; done`: ``,
		`x=a; while ls; do rm -rf "$x/"; y=; done`:                             `a/`,
		`x=a; rm b; rm -rf "$x/"`:                                              `a/`,
		`x=a; $y; rm -rf "$x/"`:                                                ``,
		`x=a; source f; rm -rf "$x/"`:                                          ``,
		`trap 'x=' DEBUG; x=a; rm -rf "$x/"`:                                   ``,
		`declare -n y=x; x=a; y=; rm -rf "$x/"`:                                ``,
		`f() { x=; }; x=a; f; rm -rf "$x/"`:                                    ``,
		`f() { ls; }; x=a; rm -rf "$x/"`:                                       `a/`,
		`x=a; printf -v x b; rm -rf "$x/"`:                                     ``,
		`x=""; : ${x:=/}; rm -rf "$x"`:                                         ``,
		`x=5; : $((x=6)); rm -rf "$x"`:                                         ``,
		`x=5; let x++; rm -rf "$x"`:                                            ``,
		`x=5; ls {x}>a; rm -rf "$x"`:                                           ``,
		`x=5; (( x++ )); rm -rf "$x"`:                                          ``,
		`for x in a b; do for x in c; do ls; done; rm -rf "$x"; done`:          ``,
		`x=a; x[0]=/; rm -rf "$x"`:                                             ``,
		`x=a; x=/ eval 'rm -rf "$x"'`:                                          ``,
		`x=a; x=/ rm -rf "$x"`:                                                 `a`,
		`x=a; x+=b; rm -rf "$x"`:                                               ``,
		`x=5; let "x=6"; rm -rf "$x"`:                                          ``,
		`rm -rf a`:                                                             ``,
	} {
		commands := slices.DeleteFunc(Analyze(script).Commands, func(c Command) bool { return c.DenyOnly || c.Name != "rm" })
		words := commands[len(commands)-1].Words
		if got := strings.Join(words[len(words)-1].Spelled(), " "); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// TestDirs shows where each command may run.
func TestDirs(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"ls":                                  "[.]",
		"cd a && ls":                          "[.] [a]",
		"cd a; ls":                            "[.] [. a]",
		"cd a || ls":                          "[.] [. a]",
		"cd a && ls; cat":                     "[.] [a] [. a]",
		"cd a && cd ../b && ls":               "[.] [a] [a/../b]",
		"(cd a && ls); cat":                   "[.] [a] [.]",
		"cd $x && ls":                         "[.] []",
		"cd() { ls; }; cd a && ls":            "[] [.] [. a]",
		"CDPATH=/; cd a && ls":                "[.] [.] [. a]",
		"trap 'ls' EXIT; cd a && ls":          "[.] [] [.] [. a]",
		"! cd a && ls":                        "[.] [. a]",
		"for d in a b; do (cd $d && ls);done": "[.] [a b]",
		"for d in a b; do cd $d; done":        "[]",
		"bash -c 'cd a && ls' && cat":         "[.] [.] [a] [.]",
	} {
		var got []string
		for _, c := range Analyze(script).Commands {
			if c.Via != "expansion" {
				got = append(got, "["+strings.Join(c.Dirs, " ")+"]")
			}
		}
		if line := strings.Join(got, " "); line != want {
			t.Errorf("%s: %s, want %s", script, line, want)
		}
	}
}

// TestPathsOfVariables: what variables hold is followed where it is certain.
func TestPathsOfVariables(t *testing.T) {
	t.Parallel()
	for _, c := range []named{
		{script: "for f in a b; do cat $f; done", reads: "a b"},
		{script: "for f in src/*.go; do head -3 \"$f\"; done", reads: "src"},
		{script: "for f in *.go; do cat \"$f\"; done", reads: "."},
		{script: "for f in src/*.go; do cat $f; done", unlisted: true},
		{script: "for f in src/*; do cat \"$f/../../x\"; done", unlisted: true},
		{script: "for f in .*; do cat \"$f\"; done", unlisted: true},
		{script: "for f in a b; do cat src/$f/*.go; done", reads: "src/a src/b"},
		{script: "for d in a b; do for f in 1 2; do cat \"$d/$f\"; done; done", reads: "a/1 a/2 b/1 b/2"},
		{script: "for d in a b; do rm -r \"$d/x\"; done", writes: "a/x b/x"},
		{script: "for f in a b; do wc -l < \"$f\"; done", reads: "a b"},
		{script: "for f in *.go; do wc -l < \"$f\"; done", reads: "."},
		{script: "for f in a b; do echo x > \"$f\"; done", writes: "a b"},
		{script: "for f in ~/.ssh/*; do cat \"$f\"; done", reads: "~/.ssh"},
		{script: "for f in a b; do [[ -f $f ]]; done", reads: "a b"},
		{script: "for f in \"$@\"; do cat \"$f\"; done", unlisted: true},
		{script: "for f in a; do read -r f; cat \"$f\"; done < x", reads: "x", unlisted: true},
		{script: "x=src; cat \"$x\"/[ab]*.go", reads: "src"},
		{script: "x=src; cat \"$x\"[\"a\"]/b", unlisted: true},
		{script: "x=-; cd \"$x\" && cat a", unlisted: true},
		{script: "cd \"$HOME\" && cat a", reads: "~ ~/a"},
		{script: "x=-f.env; grep \"$x\" a", reads: "a", unlisted: true},
		{script: "for f in *; do cat \"$f\"; done", reads: "."},
		{script: "x=a; cat \"$x\" b$x", reads: "a ba"},
		{script: "x=~/a; cat \"$x/b\"", reads: "~/a/b"},
		{script: "x=~/a; cat \"b$x\"", unlisted: true},
		{script: "x='~'; cat \"$x/b\"", reads: "./~/b"},
		{script: "x=a:~/b; cat \"$x\"", unlisted: true},
		{script: "x=$PWD/a; cd b; cat \"$x\"", reads: "b", unlisted: true},
		{script: "x=src; rm -rf \"$x/\"", writes: "src/"},
		{script: "x=src; cat \"$x\"/*.go", reads: "src"},
		{script: "x=a; y=$x/b; cat \"$y\"", reads: "a/b"},
		{script: "x=a; y=\"$y$x\"; cat \"$y\"", unlisted: true},
		{script: "x=a; if ls y; then x=b; fi; cat \"$x\"", reads: "y", unlisted: true},
		{script: "x=a; make; cat \"$x\"", reads: "a", unlisted: true},
		{script: "readonly x=a; cat \"$x\"", reads: "a"},
		{script: "readonly x=a\nx=b\ncat \"$x\"", unlisted: true},
		{script: "cat \"$HOME\"/*.txt \"$HOME/x\"", reads: "~ ~/x"},
		{script: "cat '~'/*", reads: "./~"},
		{script: "cat .[\".\"]/x", unlisted: true},
		{script: "grep -- $x", unlisted: true},
		{script: "ls | xargs rg --", reads: ".", unlisted: true},
		{script: "jq \"$x\" a", reads: "a", unlisted: true},
	} {
		checkPaths(t, c)
	}
}

// TestPathsAfterCd: behind && the shell is where cd has led.
func TestPathsAfterCd(t *testing.T) {
	t.Parallel()
	for _, c := range []named{
		{script: "cd a && cd b && cat x", reads: "a a/b a/b/x"},
		{script: "cd a && cat x && cat y; cat z", reads: "a a/x a/y z a/z"},
		{script: "cd a && cat x || cat y", reads: "a a/x y a/y"},
		{script: "(cd a && cat x) && cat y", reads: "a a/x y"},
		{script: "! cd a && cat x", reads: "a x a/x"},
		{script: "timeout 5 cd a && cat x", reads: "a x a/x"},
		{script: "eval 'cd a' && cat x", reads: "a x a/x"},
		{script: "{ cd a && cat x; } && cat y", reads: "a a/x y a/y"},
		{script: "echo $(cd a) && cat x", reads: "a x"},
		{script: "cd a && { cd b; cat x; } && cat y", reads: "a a/b a/x a/b/x a/y a/b/y"},
		{script: "cd a && rm -rf *", reads: "a", writes: "a", unlisted: true},
	} {
		checkPaths(t, c)
	}
}

// TestPathsInDisguise: other spellings of a path, and programs that read more than one file.
func TestPathsInDisguise(t *testing.T) {
	t.Parallel()
	for _, c := range []named{
		{script: "cat /proc/self/cwd/.env", reads: "./.env", unlisted: true},
		{script: "cat /proc/1/root/etc/x", reads: "/etc/x", unlisted: true},
		{script: "cat ~+/.env ~+x", reads: "./.env", unlisted: true},
		{script: "cat \"$(pwd)/.env\"", reads: "./.env"},
		{script: "cat $'\\x2eenv'", reads: ".env"},
		{script: "echo .env | xargs cat", reads: ".env", unlisted: true},
		{script: "tar cf - .", reads: ".", unlisted: true},
		{script: "tar -C d -czf x.tgz a", reads: "d x.tgz a", writes: "x.tgz", unlisted: true},
		{script: "tar xf x.tgz -C d", writes: "d", unlisted: true},
		{script: "zip -r out.zip . .env", reads: "out.zip . .env", writes: "out.zip", unlisted: true},
		{script: "rsync -a a b host:c", reads: "a b", unlisted: true},
		{script: "scp host:a b", writes: "b", unlisted: true},
	} {
		checkPaths(t, c)
	}
}
