package bash

import (
	"maps"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func FuzzParseReport(f *testing.F) {
	f.Add(reportMark + "/dir\n\x00declare -x A=\"1\"\ndeclare -x B=$'two\\nlines\\377'\ndeclare -x C\n\x00end\x00")
	f.Add("noise" + reportMark + "\x00\x00end\x00")
	f.Add(reportMark + "/d\n\x00declare -ax L=([0]=\"a)\" [1]=$'b\\'')\nexport D=\"\\$x\"\n\x00end\x00")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := parseReport(text)
		if !ok {
			if s.dir != "" || s.exports != nil {
				t.Errorf("%q: a report that is not whole gave %+v", text, s)
			}
			return
		}
		// What was understood, written as a shell would, is understood as the same.
		quoted := strings.NewReplacer(`"`, `\"`, `$`, `\$`, "`", "\\`", `\`, `\\`)
		var again strings.Builder
		again.WriteString(reportMark + s.dir + "\n\x00")
		for name, value := range s.exports {
			again.WriteString("declare -x " + name + `="` + quoted.Replace(value) + "\"\n")
		}
		again.WriteString("\x00end\x00")
		back, ok := parseReport(again.String())
		if strings.Contains(again.String()[len(reportMark):], reportMark) {
			return
		}
		if !ok || back.dir != s.dir || !maps.Equal(back.exports, s.exports) {
			t.Errorf("%q: %+v became %+v, %v", text, s, back, ok)
		}
	})
}

// Every byte that a variable can hold comes back from a real shell as it was.
func TestOddExports(t *testing.T) {
	s := newSession(t)
	var bytes strings.Builder
	for b := 1; b < 256; b++ {
		bytes.WriteByte(byte(b))
	}
	s.environ = append(s.environ, "ALL="+bytes.String(), "QUOTES=\"'`$x\\", "UNICODE=\u00e4\u20ac\U0001F600", "END=\\", "LINES2=a\n\nb\n")
	a := s.bash(`export all="$ALL" quotes="$QUOTES" unicode="$UNICODE" end="$END" lines2="$LINES2" empty=
		export -n SHELLOPTS; declare -x unset_yet; declare -ix number=7; declare -ax list=(a "b)" $'c\n'); declare -rx fixed='a b'`)
	if a.err != nil {
		t.Fatal(a.text, a.err)
	}
	got := asMap(s.environ)
	for name, want := range map[string]string{
		"all": bytes.String(), "quotes": "\"'`$x\\", "unicode": "\u00e4\u20ac\U0001F600", "end": "\\", "lines2": "a\n\nb\n", "empty": "",
		"number": "7", "fixed": "a b", "ALL": bytes.String(),
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"unset_yet", "list"} {
		if value, has := got[name]; has {
			t.Errorf("%s: got %q, want nothing", name, value)
		}
	}
}

// TestEarlyPreludeBeginsTime: a shell that has waited counts its seconds from its call on.
func TestEarlyPreludeBeginsTime(t *testing.T) {
	script := "SECONDS=1000\n" + earlyPrelude("", nil, false, nil) + "echo $SECONDS"
	out, err := exec.Command("bash", "--noprofile", "--norc", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || got >= 1000 {
		t.Errorf("it has run for %q seconds", out)
	}
}
