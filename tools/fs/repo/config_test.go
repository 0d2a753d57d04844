package repo_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/tools/fs/repo"
)

var configs = []struct {
	name, file string
	want       []repo.Setting
	refused    string
}{
	{name: "empty", file: ""},
	{name: "comments", file: "# a\n; b\n\n  # c\n[core] # d\n"},
	{name: "plain", file: "[core]\n\thooksPath = .githooks\n", want: []repo.Setting{{Key: "core.hookspath", Value: ".githooks"}}},
	{name: "case", file: "[CORE \"Sub\"]\nHooksPath=X", want: []repo.Setting{{Key: "core.Sub.hookspath", Value: "X"}}},
	{
		name: "one line", file: "[a]b=1\n[c]d=2[e]f\n",
		want: []repo.Setting{{Key: "a.b", Value: "1"}, {Key: "c.d", Value: "2[e]f"}},
	},
	{name: "old subsection", file: "[Filter.LFS]clean=x", want: []repo.Setting{{Key: "filter.lfs.clean", Value: "x"}}},
	{name: "both subsections", file: "[a.B \"C.d\"]e=x", want: []repo.Setting{{Key: "a.b.C.d.e", Value: "x"}}},
	{name: "subsection escapes", file: `[a "b\"c\\d\ne"]f=x`, want: []repo.Setting{{Key: `a.b"c\dne.f`, Value: "x"}}},
	{name: "subsection brackets", file: `[a "b]c # d"]e=x`, want: []repo.Setting{{Key: "a.b]c # d.e", Value: "x"}}},
	{name: "empty subsection", file: `[a ""]b=x`, want: []repo.Setting{{Key: "a..b", Value: "x"}}},
	{name: "header with blanks", file: "[a \t \"b\"]c=x", want: []repo.Setting{{Key: "a.b.c", Value: "x"}}},
	{name: "empty section", file: `[ "a"]b=x`, want: []repo.Setting{{Key: ".a.b", Value: "x"}}},
	{name: "no section", file: "a=x", want: []repo.Setting{{Key: "a", Value: "x"}}},
	{
		name: "implicit", file: "[a]\nb\nc =\nd\t \ne = \"\"\n",
		want: []repo.Setting{{Key: "a.b", Implicit: true}, {Key: "a.c"}, {Key: "a.d", Implicit: true}, {Key: "a.e"}},
	},
	{
		name: "quotes", file: `[a]` + "\n" + `b = " x "y " z # "# c` + "\n" + `c=x"y"z` + "\n",
		want: []repo.Setting{{Key: "a.b", Value: " x y  z # "}, {Key: "a.c", Value: "xyz"}},
	},
	{name: "escapes", file: `[a]b = \t\n\b\\\"x`, want: []repo.Setting{{Key: "a.b", Value: "\t\n\b\\\"x"}}},
	{name: "continued", file: "[a]\nb = x \\\n  y\\\r\nz\nc=1", want: []repo.Setting{{Key: "a.b", Value: "x   yz"}, {Key: "a.c", Value: "1"}}},
	{name: "continued quote", file: "[a]b=\"x\\\n y\"", want: []repo.Setting{{Key: "a.b", Value: "x y"}}},
	{name: "continued comment", file: "[a]b=x # \\\nc=y", want: []repo.Setting{{Key: "a.b", Value: "x"}, {Key: "a.c", Value: "y"}}},
	{name: "continued at the end", file: "[a]b=x\\", want: []repo.Setting{{Key: "a.b", Value: "x"}}},
	{name: "blanks", file: "[a]\n b \t=\t x  y \t \n", want: []repo.Setting{{Key: "a.b", Value: "x  y"}}},
	{name: "trailing blank kept by a quote", file: "[a]b=x  \"\"  \n", want: []repo.Setting{{Key: "a.b", Value: "x  "}}},
	{name: "CRLF", file: "[a]\r\nb = x\r\nc\r\n", want: []repo.Setting{{Key: "a.b", Value: "x"}, {Key: "a.c", Implicit: true}}},
	{name: "CR", file: "[a]\rb = x\ry\r", want: []repo.Setting{{Key: "a.b", Value: "x\ry"}}},
	{name: "BOM", file: "\xef\xbb\xbf[a]b=x", want: []repo.Setting{{Key: "a.b", Value: "x"}}},
	{
		name: "NUL", file: "[core \"hookspath\x00\"]x = a\x00b\n",
		want: []repo.Setting{{Key: "core.hookspath", Value: "a"}},
	},
	{name: "bytes", file: "[a \"\xff\"]b=\xfe\v", want: []repo.Setting{{Key: "a.\xff.b", Value: "\xfe\v"}}},
	{name: "twice", file: "[a]b=x\n[A]b=y", want: []repo.Setting{{Key: "a.b", Value: "x"}, {Key: "a.b", Value: "y"}}},

	{name: "empty header", file: "\n[]", refused: "line 2"},
	{name: "half a BOM", file: "\xef\xbb[a]", refused: "line 1"},
	{name: "late BOM", file: "\n\xef\xbb\xbf[a]", refused: "line 2"},
	{name: "open header", file: "[a]\n[b", refused: "line 2"},
	{name: "header over two lines", file: "[a\n \"b\"]", refused: "line 1"},
	{name: "subsection over two lines", file: "[a \"b\nc\"]", refused: "line 1"},
	{name: "escaped line end in a header", file: "[a \"b\\\nc\"]", refused: "line 1"},
	{name: "subsection without a quote", file: "[a b]", refused: "line 1"},
	{name: "text behind a subsection", file: "[a \"b\" ]", refused: "line 1"},
	{name: "underscore in a section", file: "\n\n[a_b]", refused: "line 3"},
	{name: "underscore in a name", file: "[a]\nb_c=x", refused: "line 2"},
	{name: "digit first", file: "[a]\n1=x", refused: "line 2"},
	{name: "open quote", file: "[a]\nb=\"x\nc=y", refused: "line 2"},
	{name: "open quote, continued", file: "[a]\nb=\"x\\\ny\nc=z", refused: "line 3"},
	{name: "unknown escape", file: "[a]\nb=\\x", refused: "line 2"},
	{name: "quoted name", file: "[a]\n\"b\"=x", refused: "line 2"},
	{name: "text behind a name", file: "[a]\nb c", refused: "line 2"},
	{name: "comment behind a name", file: "[a]\nb # c", refused: "line 2"},
	{name: "CR behind a name", file: "[a]\nb\r=x", refused: "line 2"},
}

func TestParseConfig(t *testing.T) {
	ask := git(t)
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			got, err := repo.ParseConfig([]byte(c.file))
			if err != nil && (c.refused == "" || !strings.HasPrefix(err.Error(), c.refused+":")) || err == nil && c.refused != "" {
				t.Errorf("error %v, want %q", err, c.refused)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
			if ask != nil {
				ask(t, []byte(c.file))
			}
		})
	}
}

// FuzzParseConfig compares with git itself, which reads the same file.
func FuzzParseConfig(f *testing.F) {
	ask := git(f)
	if ask == nil {
		f.Skip("install git")
	}
	for _, c := range configs {
		f.Add([]byte(c.file))
	}
	f.Fuzz(func(t *testing.T, file []byte) { ask(t, file) })
}

// FuzzWithout takes settings out of a file, each second one of those whose names begin with a
// letter, and compares what is left with git itself.
func FuzzWithout(f *testing.F) {
	ask := git(f)
	if ask == nil {
		f.Skip("install git")
	}
	for _, c := range configs {
		f.Add([]byte(c.file), byte('b'), true)
		f.Add([]byte(c.file), byte('c'), false)
	}
	f.Fuzz(func(t *testing.T, file []byte, letter byte, odd bool) {
		count := 0
		unwanted := func(s repo.Setting) bool {
			count++
			return (count%2 == 1) == odd || strings.ContainsRune(s.Key, rune(letter))
		}
		all, err := repo.ParseConfig(file)
		rest, keys, err2 := repo.Without(file, unwanted)
		if err != nil || err2 != nil {
			if err == nil || err2 == nil {
				t.Fatalf("%q: ParseConfig says %v, Without %v", file, err, err2)
			}
			return
		}
		count = 0
		want := slices.DeleteFunc(slices.Clone(all), unwanted)
		got, err := repo.ParseConfig(rest)
		if err != nil || !slices.Equal(got, want) || len(keys) != len(all)-len(want) {
			t.Fatalf("%q without %q is %q:\n got %+v, %v\nwant %+v", file, keys, rest, got, err, want)
		}
		ask(t, rest)
	})
}

// TestWithout: everything but the unwanted settings stays, to the byte.
func TestWithout(t *testing.T) {
	const evil = "x.evil"
	for _, c := range []struct{ name, file, want string }{
		{"a line", "[x]\n\ta = 1\n\tevil = 2\n\tb = 3\n", "[x]\n\ta = 1\n\tb = 3\n"},
		{"comments", "# one\n[x] # two\n\tevil = 2 # three\n; four\n", "# one\n[x] # two\n\t# three\n; four\n"},
		{"behind a header", "[x] evil = 2\n\ta\n[x]evil\n; one\n", "[x] \n\ta\n[x]\n; one\n"},
		{"a whole section", "[y]\n\ta\n[x]\n\tevil = 2\n\tevil\n[z]\n", "[y]\n\ta\n[z]\n"},
		{"a section at the end", "[y]\n\ta\n[x]\n\tevil = 2\n", "[y]\n\ta\n"},
		{"a section behind another", "[y] [x] evil = 2\n", "[y] \n"},
		{"a section of comments", "[x]\n# one\n\tevil = 2\n", "[x]\n# one\n"},
		{"many lines", "[x]\n\tevil = a\\\n b \\\n\"c\"\n\tb = 3\n", "[x]\n\tb = 3\n"},
		{"line ends of Windows", "[x]\r\n\tevil = 2\r\n\tb = 3\r\n", "[x]\r\n\tb = 3\r\n"},
		{"no line end", "\xef\xbb\xbf[x]\na = 1\nevil", "\xef\xbb\xbf[x]\na = 1\n"},
		{"twice", "[x]\nevil = 1\n[y]\nevil = 2\n[X]\n\tEVIL = 3\n", "[y]\nevil = 2\n"},
		{"none", "[y]\n\n\n  evil = 2\n", "[y]\n\n\n  evil = 2\n"},
	} {
		rest, keys, err := repo.Without([]byte(c.file), func(s repo.Setting) bool { return s.Key == evil })
		if err != nil || string(rest) != c.want || slices.ContainsFunc(keys, func(key string) bool { return key != evil }) {
			t.Errorf("%s: %q, %q, %v, want %q", c.name, rest, keys, err, c.want)
		}
	}
}

// git returns a check that ParseConfig and git agree about a file; nil where git is not installed.
func git(t testing.TB) func(t *testing.T, file []byte) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil
	}
	dir := t.TempDir()
	list := func(t testing.TB, content []byte) ([]byte, error) {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "config", "--file", file, "--no-includes", "-z", "--list")
		cmd.Dir, cmd.Env = dir, []string{
			"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), "LC_ALL=C",
		}
		return cmd.Output()
	}
	blank := func(s []byte) []byte { return s }
	if out, err := list(t, []byte("[a]b=x\ty")); err != nil {
		t.Fatal(err)
	} else if !bytes.Contains(out, []byte("x\ty")) { // git before 2.45
		blank = func(s []byte) []byte {
			return bytes.ReplaceAll(bytes.ReplaceAll(s, []byte("\t"), []byte(" ")), []byte("\r"), []byte(" "))
		}
	}
	return func(t *testing.T, file []byte) {
		t.Helper()
		want, refused := list(t, file)
		settings, err := repo.ParseConfig(file)
		if (err != nil) != (refused != nil) {
			t.Fatalf("%q: ParseConfig says %v, git %v", file, err, refused)
		}
		if got := listed(settings); err == nil && !bytes.Equal(blank(got), blank(want)) {
			t.Errorf("%q:\n got %q\nwant %q", file, got, want)
		}
	}
}

// listed writes settings as "git config -z --list" does.
func listed(settings []repo.Setting) []byte {
	var out bytes.Buffer
	for _, s := range settings {
		out.WriteString(s.Key)
		if !s.Implicit {
			out.WriteString("\n" + s.Value)
		}
		out.WriteByte(0)
	}
	return out.Bytes()
}
