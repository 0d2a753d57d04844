package shell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestSteered lists which commands a session's variables, which the daemon itself has
// not, make other than read-only, as "command: variable".
func TestSteered(t *testing.T) {
	for _, c := range []struct{ script, set, want string }{
		{"pip list", "HOME=/x", "pip list: HOME"},
		{"pip list", "NODE_ENV=test CI=1 USER=u TMPDIR=/x", ""},
		{"pip list", "PYTHONPATH=x", "pip list: PYTHONPATH"},
		{"pip list", "PYTHONUNBUFFERED=1", ""},
		{"/usr/bin/pip3 show x | head -1", "HOME=/x", "/usr/bin/pip3 show x: HOME"},
		{"timeout 5 pip list; ls", "HOME=/x", "pip list: HOME"},
		{"bash -c 'pip list'", "HOME=/x", "pip list: HOME"},
		{"echo $(pip list)", "HOME=/x", "pip list: HOME"},
		{"find . -name '*.j' | xargs jq .", "HOME=/x", "jq .: HOME"},
		{"find . -exec jq . {} \\;", "HOME=/x", "find . -exec jq . {} ;: HOME"},
		{"make x; pip list", "HOME=/x", "pip list: HOME"},
		{"make x", "HOME=/x MAKEFLAGS=-k", ""}, // it is not read-only anyway
		{"git status; cat f", "HOME=/x", "git status: HOME"},
		{"git status", "GIT_AUTHOR_NAME=a", ""},
		{"touch x; git log", "GIT_TRACE=/x", "git log: GIT_TRACE"},
		{"python3 --version", "HOME=/x", "python3 --version: HOME"},
		{"sqlite3 --version", "HOME=/x", "sqlite3 --version: HOME"}, // runs ~/.sqliterc
		{"nano -V", "XDG_CONFIG_HOME=/x", "nano -V: XDG_CONFIG_HOME"},
		{"node -v; npm -v", "NODE_OPTIONS=x", "node -v: NODE_OPTIONS / npm -v: NODE_OPTIONS"},
		{"tar tf x", "TAR_OPTIONS=--to-command=x", "tar tf x: TAR_OPTIONS"},
		{"go version", "GOFLAGS=-toolexec=x", "go version: GOFLAGS"},
		{"awk 1 x", "AWKPATH=/x", "awk 1 x: AWKPATH"},
		{"grep -r a . | sort", "HOME=/x NODE_OPTIONS=x FOO=bar", ""},
		{"date", "TZ=Europe/Berlin LANG=de_DE.UTF-8", ""},
		{"date", "TZ=:/x", "date: TZ"},
		{"ls", "LANGUAGE=../../x", "ls: LANGUAGE"}, // where the texts of messages are
		{"ls", "LC_MESSAGES=/x", "ls: LC_MESSAGES"},
		{"ls", "LC_ALL=zh_TW.Big5", "ls: LC_ALL"},
		{"ls", "LOCPATH=/x", "ls: LOCPATH"},
		{"ls", "GLIBC_TUNABLES=x", "ls: GLIBC_TUNABLES"},
	} {
		set := map[string]string{}
		for _, pair := range strings.Fields(c.set) {
			name, value, _ := strings.Cut(pair, "=")
			set[name] = value
		}
		a := Analyze(c.script)
		got := a.Steered(set)
		var lines []string
		for _, i := range slices.Sorted(maps.Keys(got)) {
			lines = append(lines, fmt.Sprintf("%s: %s", a.Commands[i], got[i]))
		}
		slices.Sort(lines)
		if got := strings.Join(lines, " / "); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.script, c.set, got, c.want)
		}
	}
}

// What a script exports itself counts for what it runs, before or after.
func TestExportsSteer(t *testing.T) {
	for script, want := range map[string]bool{
		"export HOME=$PWD/x; pip list":          false,
		"export HOME; pip list":                 false,
		"declare -x HOME=x && pip list":         false,
		"f() { pip list; }; export HOME=x; f":   false,
		"printf -v HOME x; pip list":            false,
		"command export HOME=x; pip list":       false,
		"(export HOME=x); pip list":             false,
		"export LANGUAGE=../x; pip list":        false,
		"export LANG=C NODE_ENV=x; pip list":    true,
		"export NODE_OPTIONS=x; pip list":       true,
		"export PYTHONUNBUFFERED=1; pip list":   true,
		"unset PYTHONPATH; pip list":            true,
		"read HOME <f; pip list":                false,
		"declare -p HOME; pip list":             true,
		"touch x; pip list":                     true,
		"export FOO=1; pip list; cat ~/.x | wc": true,
	} {
		a := Analyze(script)
		at := slices.IndexFunc(a.Commands, func(c Command) bool { return c.Name == "pip" })
		if at < 0 || a.Commands[at].ReadOnly != want {
			t.Errorf("%s: pip list is read-only: %v", script, !want)
		}
	}
	for _, script := range []string{"HOME=x pip list", "PYTHONPATH=x pip list", "LANGUAGE=../x ls", "TZ=:/x date", "HOME=x; pip list"} {
		if Analyze(script).ReadOnly {
			t.Errorf("%s is read-only", script)
		}
	}
}
