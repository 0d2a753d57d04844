package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestConfiguration: the lists name programs that the tables know, and files in the user's own home.
func TestConfiguration(t *testing.T) {
	known := func(name string) bool {
		_, ok := lookup(name)
		return ok || slices.Contains([]string{"git", "fd", "fdfind"}, name)
	}
	for name, files := range configuration {
		if !known(name) {
			t.Errorf("%s has configuration and is in no table", name)
		}
		for _, file := range strings.Fields(files) {
			if !strings.HasPrefix(file, "~/") && !strings.HasPrefix(file, "$XDG_CONFIG_HOME/") {
				t.Errorf("%s reads %s, which is not below home", name, file)
			}
		}
	}
	for _, name := range strings.Fields(wide) {
		if !known(name) && !slices.Contains([]string{"top", "fuser"}, name) {
			t.Errorf("%s reads widely and is in no table", name)
		}
	}
	for name, want := range map[string][]string{"jq": {"~/.jq"}, "/usr/bin/jq": {"~/.jq"}, "./jq": nil, "cat": nil} {
		if got := Configuration(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]bool{"ps": true, "/bin/ps": true, "./ps": false, "cat": false, "": false} {
		if got := ReadsWidely(name); got != want {
			t.Errorf("%s reads widely: %v", name, got)
		}
	}
}

func TestSearched(t *testing.T) {
	for script, want := range map[string]string{
		"ls; cd x; [ -f y ]; wc y": "ls wc", "timeout 5 id": "timeout id", "find . -exec wc {} +": "find wc", "/bin/ls; ./x; $x; a=b": "",
		"[[ -f x ]] && (( 1 )) && echo x | cat": "cat",
	} {
		var got []string
		for _, c := range Analyze(script).Commands {
			if c.Searched() {
				got = append(got, c.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", script, got, want)
		}
	}
}

// TestOwnNumber: the process whose number is $$ is one of the script's own.
func TestOwnNumber(t *testing.T) {
	for script, want := range map[string]string{
		"cat /proc/$$/status": "/proc/self/status", `cat "/proc/$$/maps"`: "/proc/self/maps", "cat /proc/${$}/status": "/proc/self/status",
		"cat /proc/$$/root/etc/x": "", "cat /proc/$$$$/status": "", "cat /proc/1$$/status": "", "cat /proc/$#/status": "", "cat /proc/$$": "", "cat $$/x": "",
		"cat /proc/${#$}/status": "", "cat /proc/$x/status": "",
	} {
		a := Analyze(script)
		got := ""
		if a.ReadOnly && len(a.Reads) == 1 {
			got = a.Reads[0]
		}
		if got != want || a.ReadOnly && (a.Unlisted == (want != "")) {
			t.Errorf("%s: read-only %v, reads %q, unlisted %v, want %q", script, a.ReadOnly, a.Reads, a.Unlisted, want)
		}
	}
}
