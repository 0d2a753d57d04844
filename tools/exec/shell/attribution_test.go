package shell

import (
	"fmt"
	"strings"
	"testing"
)

// TestAttribution lists what each command and redirection names by itself, in
// the order of the text, redirections first: < reads, > writes, * not all is
// listed, names: only names and facts are shown.
func TestAttribution(t *testing.T) {
	for script, want := range map[string]string{
		"cat a b > c && rm d":                "[> c >c] cat <a <b; rm >d",
		"cat < a":                            "[< a <a] cat",
		"ls src":                             "ls <src names",
		"ls -la *.go":                        "ls <. names",
		"cp a b c":                           "cp <a <b >c/a >c/b >c",
		"timeout 5 rm a":                     "timeout; rm >a",
		"nohup rm a":                         "nohup; rm >a",
		"bash -c 'rm a; ls'":                 "bash; rm >a; ls <. names",
		"sudo rm /a":                         "sudo *; rm >/a",
		"sudo timeout 5 bash -c 'rm x'":      "sudo *; timeout; bash; rm >x",
		"ls | xargs cat":                     "ls <. names; xargs; cat *; cat",
		"echo $(cat a) > b":                  "[> b >b] cat <a; echo names",
		"npm test":                           "npm *",
		"cat $x a":                           "cat <a *",
		"grep -r foo src":                    "grep <src",
		"grep -f p a":                        "grep <p <a",
		"x='*.env'; git show HEAD -- \"$x\"": "; git <. <HEAD <*.env",
		"x=a.env; git show HEAD -- \"$x\"":   "; git <. <HEAD <a.env names",
		"wc -l a":                            "wc <a",
		"file a":                             "file <a",
		"find . -name a":                     "find <. names",
		"find . -delete":                     "find <. >. *",
		"tree -L 2 src":                      "tree <src names",
		"tree --info src":                    "tree <src",
		"du -sh a":                           "du <a names",
		"du -X p a":                          "du <p <a",
		"stat -c %s a":                       "stat <a names",
		"[ -f a ]":                           "[ <a names",
		"test -e \"$x\"":                     "test * names",
		"[[ -f a && -n $(cat b) ]]":          "[[ <a names; cat <b",
		"realpath a":                         "realpath <a names",
		"rg foo src":                         "rg <src",
		"rg --files src":                     "rg <src names",
		"fd foo src":                         "fd <src names",
		"cd src && cat a":                    "cd <src names; cat <src/a",
		"cd src && ls > o":                   "[> o >src/o] cd <src names; ls <src names",
		"cd $x; cat a > o":                   "[> o] cd *; cat *",
		"for d in a; do cd $d; rm x; done":   "cd <a * names; rm >x >a/x *",
		"for d in a; do rm x; cd ..; done":   "rm >x *; cd <.. * names",
		"for d in a; do ls > o; cd b; done":  "[> o] ls <. * names; cd <b * names",
		"echo a > *.txt":                     "[> *.txt] echo names",
		"echo a > \"$HOME/x\"":               "[> \"$HOME/x\" >~/x] echo names",
		"echo a > $x":                        "[> $x] echo names",
		"echo a 2>&1 >/dev/null":             "echo names",
		"ls 2>>e &>f":                        "[2>>e >e] [&>f >f] ls <. names",
		"cat <<<a":                           "cat",
		"git status":                         "git <. names",
		"git diff -- a":                      "git <. <a names",
		"git diff HEAD -- a":                 "git <. <HEAD <a names",
		"git diff a b":                       "git <. <a <b",
		"git show HEAD:a/b":                  "git <. <a/b <HEAD:a/b names",
		"git blame a":                        "git <. <a names",
		"git log -p -- '*.env'":              "git <. <*.env",
		"git diff -- ':(glob)**/.env'":       "git <. <(glob)**/.env <:(glob)**/.env",
		"git diff -- *.env":                  "git <.",
		"git ls-files '*.env'":               "git <. <*.env names",
		"git log -- ':!vendor'":              "git <. <!vendor <:!vendor names",
		"git grep foo a":                     "git <. <a names",
		"git grep --untracked foo":           "git <.",
		"git push":                           "git *",
		"sed -n 1p a":                        "sed <a",
		"sed -i s/a/b/ a b":                  "sed >a >b",
		"sed -i.bak -e s/a/b/ a":             "sed >a >a.bak",
		"sed '-i/tmp/*' s/a/b/ a":            "sed >a *",
		"sed -i 's/a/b/w o' a":               "sed >o *",
		"rm ./*.go":                          "rm >. *",
		"touch -r a b":                       "touch <a >b",
	} {
		if got := spell(Analyze(script)); got != want {
			t.Errorf("%s\n got  %s\n want %s", script, got, want)
		}
	}
}

func spell(a Analysis) string {
	var all []string
	for _, r := range a.Redirects {
		mark := " <"
		if r.Writes {
			mark = " >"
		}
		all = append(all, "["+r.Text+marked(mark, r.Paths)+"]")
	}
	head := strings.Join(all, " ")
	all = nil
	for _, c := range a.Commands {
		text := c.Name + marked(" <", c.Reads) + marked(" >", c.Writes)
		if c.Unlisted {
			text += " *"
		}
		if c.Names {
			text += " names"
		}
		all = append(all, text)
	}
	return strings.TrimSpace(head + " " + strings.Join(all, "; "))
}

func marked(mark string, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return mark + strings.Join(paths, mark)
}

// TestUnions: what the parts name is what the whole names.
func TestUnions(t *testing.T) {
	for _, file := range labelledFiles {
		for _, c := range readLabelled(t, file) {
			checkUnions(t, c.Command, Analyze(c.Command))
		}
	}
}

func checkUnions(t testing.TB, script string, a Analysis) {
	t.Helper()
	if a.Err != nil {
		return
	}
	reads, writes := map[string]bool{}, map[string]bool{}
	unlisted := false
	add := func(to map[string]bool, paths []string) {
		for _, p := range paths {
			to[p] = true
		}
	}
	for _, c := range a.Commands {
		add(reads, c.Reads)
		add(writes, c.Writes)
		unlisted = unlisted || c.Unlisted
	}
	for _, r := range a.Redirects {
		if r.Writes {
			add(writes, r.Paths)
		} else {
			add(reads, r.Paths)
		}
		unlisted = unlisted || len(r.Paths) == 0
	}
	for _, p := range a.Reads {
		if !reads[p] && !unlisted {
			t.Errorf("%q: nobody reads %q", script, p)
		}
	}
	for _, p := range a.Writes {
		if !writes[p] && !unlisted {
			t.Errorf("%q: nobody writes %q", script, p)
		}
	}
	if a.Unlisted && !unlisted {
		t.Errorf("%q: unlisted, but nobody's", script)
	}
}

func TestAssigns(t *testing.T) {
	for script, want := range map[string]string{
		"ls":                               "ls []",
		"FOO=bar npm test":                 "npm test [FOO]",
		"LANG=C NODE_ENV=test npm test":    "npm test []",
		"LANG=$x npm test":                 "npm test [LANG]",
		"LANG+=C npm test":                 "npm test [LANG]",
		"A=1 B=2 LANG=C":                   " [A B]",
		"LANG=C":                           " []",
		"FOO=bar timeout 5 npm test":       "timeout 5 npm test [FOO] / npm test [FOO]",
		"FOO=bar bash -c 'A=1 npm test'":   "bash -c A=1 npm test [FOO] / npm test [FOO A]",
		"FOO=bar nice eval 'npm test'":     "nice eval npm test [FOO] / eval npm test [FOO] / npm test [FOO]",
		"FOO=bar echo $(npm test)":         "npm test [] / echo $(npm test) [FOO]",
		"FOO=bar sh -c 'npm test'; make":   "sh -c npm test [FOO] / npm test [FOO] / make []",
		"a=(1)":                            " [a]",
		"while IFS= read -r l; do ls;done": "read -r l [IFS] / ls []",
	} {
		var got []string
		for _, c := range Analyze(script).Commands {
			got = append(got, fmt.Sprintf("%s %v", c, c.Assigns))
		}
		if line := strings.Join(got, " / "); line != want {
			t.Errorf("%s\n got  %s\n want %s", script, line, want)
		}
	}
}

func TestSubcommand(t *testing.T) {
	for script, want := range map[string]string{
		"git push":                                   "",
		"ls -C a":                                    "",
		"git --version":                              "",
		"git -C a":                                   "",
		"git --no-pager log -3":                      "git log -3 safe",
		"git -P --no-optional-locks status":          "git status safe",
		"git -C sub/dir push --force":                "git push --force safe",
		"git -C ./a -C b push":                       "git push safe",
		"git -C ../a push":                           "git push",
		"git -C a/../.. push":                        "git push",
		"git -C /a push":                             "git push",
		"git -C ~/a push":                            "git push",
		"git -C $x push":                             "git push",
		"git -c a.b=c push":                          "git push",
		"git --git-dir /a push":                      "git push",
		"git --git-dir=/a push":                      "git push",
		"git -p log":                                 "git log",
		"git --unknown push":                         "git push",
		"git $x push":                                "git push",
		"git --no-pager $x":                          "",
		"timeout 5 git --no-pager push":              "git push safe",
		"/usr/bin/git --literal-pathspecs add 'a b'": "/usr/bin/git add a b safe",
	} {
		commands := Analyze(script).Commands
		c := commands[len(commands)-1]
		got := Command{Words: c.Subcommand}.String()
		if c.SubcommandSafe {
			got += " safe"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
