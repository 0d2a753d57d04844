package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestParts takes words apart: a kind and a text each, * if it is quoted, ! if the script ends where it is empty.
func TestParts(t *testing.T) {
	for text, want := range map[string]string{
		"a$X/b":           "0:a 3:X 0:/b",
		`"$X/"*`:          "3:X* 0:/* 0:*",
		`\$X'$Y'"\$Z\a"`:  `0:$X 0:$Y 0:$Z\a*`,
		"~/x":             "2:~ 0:/x",
		`~+/"$X"`:         "2:~+ 0:/ 3:X*",
		"${X:-~/y$Z}":     "3:X(2:~ 0:/y 3:Z)",
		"${X:?no}${Y:+z}": "3:X! 3:Y",
		"${#X}${!Y}$1":    "3: 3: 3:1",
		"$(echo /)`pwd`":  "4:echo / 4:pwd",
		"${ echo /; }":    "4: echo /; ",
		"$((1+1))x":       "5: 0:x",
		"$'\\x2f'":        `1:\x2f`,
		"two words":       "0:two words",
		`"open`:           `0:"open`,
		"":                "0:",
	} {
		if got := partsText((Word{Text: text}).Parts()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func partsText(parts []Part) string {
	var texts []string
	for _, p := range parts {
		text := fmt.Sprintf("%d:%s", p.Kind, p.Text)
		if p.Quoted {
			text += "*"
		}
		if p.Required {
			text += "!"
		}
		if p.Or != nil {
			text += "(" + partsText(p.Or) + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// TestHosts finds hosts in words and redirections; loopback addresses are the caller's to leave out.
func TestHosts(t *testing.T) {
	for script, want := range map[string]string{
		"curl -s example.com/x":                  "example.com",
		"curl -d @x a.example.com":               "a.example.com",
		"curl -X POST a.example.com":             "a.example.com",
		"curl -o a.example.com":                  "",
		"mytool --url=https://u@b.example.com/x": "b.example.com",
		"URL=https://a.example.com mytool":       "",
		"mytool URL=https://a.example.com":       "",
		"git clone git@github.com:x/y.git":       "github.com",
		"git -C sub remote add o https://a.b/c":  "",
		"ssh user@host.example.com ls":           "host.example.com",
		"curl http://localhost:3000 $HOST":       "localhost",
		"cat https://a.example.com":              "",
		"echo x > /dev/tcp/a.example.com/80":     "a.example.com",
		"exec 3<>/dev/udp/1.2.3.4/53":            "1.2.3.4",
		"{ ls; } &> '/dev/tcp/a.b/80'":           "a.b",
		"sh -c 'cat </dev/tcp/a.b/1'":            "a.b",
		"echo x > /dev/tcp/80 2> /dev/null":      "",
		"cat /dev/tcp/a.example.com/80":          "",
	} {
		analysis := Analyze(script)
		got := analysis.Hosts
		for _, r := range analysis.Redirects {
			if r.Target.Literal && connection.MatchString(r.Target.Text) {
				t.Errorf("%s: %s is listed as a file", script, r.Text)
			}
		}
		for _, c := range analysis.Commands {
			for _, host := range c.Hosts() {
				if !slices.Contains(got, host) {
					got = append(got, host)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// TestPattern: where a word that is a pattern looks for names, seen from /w.
func TestPattern(t *testing.T) {
	for word, want := range map[string]string{
		"*.go": "/w /w/*.go", "src/[!a]*": "/w/src /w/src/[^a]*", "/etc/*.conf": "/etc /etc/*.conf", "a*/b/c/d/e/f": "", "x": "", `"$X"*`: "", "../*": "/ /*",
	} {
		got := ""
		if within, pattern, ok := (Word{Text: word}).Pattern("/w"); ok {
			got = within + " " + pattern
		}
		if got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
