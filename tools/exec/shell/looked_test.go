package shell

import (
	"strings"
	"testing"
)

// TestLooked: what only counts as read-only where the caller looks at files and
// repositories, beside what it must not be mistaken for.
func TestLooked(t *testing.T) {
	setting := Setting{Looked: true, Aliases: map[string]string{
		"last": "!git log -1", "both": "!git log -1 && git status -s", "short": "!f() { git log -1; }; f",
		"rmx": "!rm x", "reads": "!cat x", "lists": "!ls", "path": "!git log -- x", "fed": "!git log < x", "runs": `!git log "$1"`,
		"self": "!git self", "ext": "!git log --ext-diff", "writes": "!git log > out", "moves": "!cd src && git log -1",
	}}
	for script, want := range map[string]bool{
		"git last": true, "git last -p": true, "git both": true, "git short": true, "git last --stat | head": true,
		"git last '-p'": true, `git last "$x"`: false, "git last --output=x": false, "git last --ext-diff": false, "git last \"a'b\"": false,
		"git rmx": false, "git reads": false, "git lists": false, "git path": false, "git fed": false, "git runs": false, "git self": false,
		"git ext": false, "git writes": false, "git last -- x": false, "git moves": false, "cd src && git last": false, "git -C src last": false,
		"GIT_DIR=x git last": false, "env GIT_DIR=x git last": false,

		"git describe --always --dirty": true, "git describe --dirty=-x": true, "git describe --dirty --broken": false, "git describe --broken": false,
		"git describe --dirt": false,

		"less a": true, "less -N a b | head": true, "more a | head": true, "cat a | less -R b": true,
		"less": false, "less +!id a": false, "less -o out a": false, "less -O out a": false, "less -ka b": false, "less -- +!id": false,
		`less "$x"`: false, "less *": false, "more -p x a": false, "more +/x a": false, "ls | xargs less": false, "ls | xargs -I{} less {}": false,
		"less /dev/sda": false, "LESSOPEN='|x' less a": false, "env LESSOPEN='|x' less a": false,

		"npm pkg get name": true, "npm pkg get": true, "npm run": true, "npm run --json": true, "npm pkg set a=b": false, "npm pkg fix": false,
		"npm run build": false, "npm run-script build": false, "npm run --silent x": false, `npm run "$x"`: false,

		"go version -m bin/x": true, "go version": true, "go version -m -v bin/x": true, "go version -toolexec x": false, `go version $x`: false,
	} {
		if a := AnalyzeIn(script, setting); a.ReadOnly != want {
			t.Errorf("%s: read-only %v, want %v: %s", script, a.ReadOnly, want, a.Reason)
		}
	}
	for _, script := range []string{"git describe --dirty", "less a", "npm run", "go version -m x"} {
		if c := AnalyzeIn(script, setting).Commands[0]; !c.Alone {
			t.Errorf("%s counts as read-only where nothing confines it", script)
		}
	}
}

// TestFollowed: what a function, an array or xargs makes a command read is listed with
// what is known at that place.
func TestFollowed(t *testing.T) {
	for _, c := range []named{
		{script: `f() { cat "$1"; }; f a; f b`, reads: "a b"},
		{script: `f() { cat "$@"; }; f a /b`, reads: "a /b"},
		{script: `f() { cat "$2"; }; f a`, unlisted: true},
		{script: `f() { cat "$1"; }; f "$x"`, unlisted: true},
		{script: `f() { cat a; }; cd src && f`, reads: "a src src/a"},
		{script: `x=a; f() { cat "$x"; }; x=/b; f`, reads: "/b"},
		{script: `x=a; f() { x=/b; }; f; cat "$x"`, unlisted: true},
		{script: `f() { local x=/b; cat "$x"; }; x=a; f; cat a`, reads: "/b a"},
		{script: `f() { cat a; }`, reads: "a"},
		{script: `f() { cat "$1"; }; g() { f /b; }; g a`, reads: "/b"},
		{script: `a=(x /y); cat "${a[@]}"`, reads: "x /y"},
		{script: `a=(x); a+=(/y); cat "${a[@]}"`, reads: "x /y"},
		{script: `a=(x); [ -f b ] && a+=(/y); cat "${a[@]}"`, reads: "b", unlisted: true},
		{script: `a=(x); for i in 1 2; do cat "${a[@]}"; a=(/y); done`, reads: "x", unlisted: true},
		{script: `a=("$PWD/x"); cd src; cat "${a[@]}"`, reads: "src", unlisted: true},
		{script: `a=(*.go); cd src; cat "${a[@]}"`, reads: "src ."},
		{script: "a=(" + strings.Repeat("x ", maxItems) + `y); cat "${a[@]}"`, unlisted: true},
		{script: `mapfile -t a < f; cat "${a[@]}"`, reads: "f", unlisted: true},
		{script: `a=(x); mapfile -t a < f; cat "${a[@]}"`, reads: "f", unlisted: true},
		{script: `env FOO=1 bash -c 'cat "$FOO" b'`, reads: "b", unlisted: true},
		{script: "(cd /etc && pwd)"},
		{script: "(cd /etc && pwd && ls)", reads: "/etc"},
		{script: "cd /etc && pwd", reads: "/etc"},
	} {
		checkPaths(t, c)
	}
}
