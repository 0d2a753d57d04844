package text

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
	"pgregory.net/rapid"
)

// encoded returns s in the named encoding.
func encoded(t testing.TB, name, s string) []byte {
	t.Helper()
	switch name {
	case "utf-8":
		return []byte(s)
	case "utf-8 bom":
		return append([]byte{0xEF, 0xBB, 0xBF}, s...)
	}
	enc, err := htmlindex.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatalf("%s cannot hold the sample: %v", name, err)
	}
	switch name {
	case "utf-16le":
		return append([]byte{0xFF, 0xFE}, out...)
	case "utf-16be":
		return append([]byte{0xFE, 0xFF}, out...)
	}
	return out
}

func TestDetect(t *testing.T) {
	for _, c := range []struct{ encoding, text string }{
		{"utf-8", "plain ASCII"},
		{"utf-8", ""},
		{"utf-8", "naïve café"},
		{"utf-8", "\x1b[1mbold\x1b[0m\f"},
		{"utf-8 bom", "text"},
		{"utf-16le", "hello\r\n"},
		{"utf-16be", "日本語"},
		{"windows-1252", "café"},
		{"windows-1252", "Änderung"},
		{"windows-1252", "élan vital, naïve, Ärger, Größe, Übermut, déjà vu\n"},
		{"windows-1252", "price: 10 € – “quoted”\n"},
		{"windows-1251", "Привет, мир! Это обычный текст.\n"},
		{"koi8-r", "Привет, мир! Это обычный текст, в нём есть слова.\n"},
		{"gbk", "// 读取配置文件，如果不存在则使用默认值\nint main() { return 0; }\n"},
		{"gbk", "这是一个测试文件。\n"},
		{"big5", "// 讀取設定檔，如果不存在就使用預設值\n這是一個測試檔案。\n"},
		{"shift_jis", "// 設定ファイルを読み込みます。なければ既定の値を使います\n"},
		{"euc-jp", "// 設定ファイルを読み込みます。なければ既定の値を使います\n"},
		{"euc-kr", "// 설정 파일을 읽습니다. 없으면 기본값을 사용합니다\n"},
		{"iso-8859-2", "<?xml version=\"1.0\" encoding=\"ISO-8859-2\"?>\n<a>zażółć gęślą jaźń</a>\n"},
		{"windows-1253", "<html><meta charset=windows-1253><p>Καλημέρα κόσμε</p>\n"},
		{"koi8-u", "#!/usr/bin/python\n# -*- coding: koi8-u -*-\n# їжак і ґава\n"},
	} {
		e, isText := Detect(encoded(t, c.encoding, c.text))
		if want := strings.TrimSuffix(c.encoding, " bom"); !isText || e.Name() != want {
			t.Errorf("%q in %s: %s, text %v", c.text, c.encoding, e.Name(), isText)
		}
		if (e.BOM() != nil) != (strings.HasPrefix(c.encoding, "utf-16") || c.encoding == "utf-8 bom") {
			t.Errorf("%q in %s: byte order mark % x", c.text, c.encoding, e.BOM())
		}
	}
}

func TestDetectBinary(t *testing.T) {
	for name, sample := range map[string]string{
		"nul":    "text\x00text",
		"png":    "\x89PNG\r\n\x1a\n\xff\xfe",
		"jpeg":   "\xff\xd8\xff\xe0",
		"gzip":   "\x1f\x8b\x08\xff",
		"utf-32": "\xff\xfe\x00\x00a\x00\x00\x00",
		"noise":  "\x01\x02\xff\xfe\xfd\x80\x81",
	} {
		if e, isText := Detect([]byte(sample)); isText {
			t.Errorf("%s was taken for %s", name, e.Name())
		}
	}
}

func TestDetectDamageAndDepth(t *testing.T) {
	damaged := "viele Wörter für eine schöne Prüfung der Größe, äöü \xff"
	if e, _ := Detect([]byte(damaged)); e.Name() != "utf-8" {
		t.Errorf("one stray byte makes it %s", e.Name())
	}
	if e, _ := Detect([]byte(strings.Repeat("x", Sample-1) + "ö"[:1])); e.Name() != "utf-8" {
		t.Errorf("a character cut by the end of the sample makes it %s", e.Name())
	}
	deep := append([]byte(strings.Repeat("ascii\n", Sample/6+1)), encoded(t, "windows-1252", "café")...)
	if e, _ := DetectWhole(deep); e.Name() != "windows-1252" {
		t.Errorf("behind the sample: %s", e.Name())
	}
}

// Every character of a text leads back to exactly its own bytes.
func TestOffsetsLeadBack(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"utf-8", "añ😀\r\n"},
		{"utf-16le", "añ😀\r\n"},
		{"utf-16be", "añ😀\r\n"},
		{"gbk", "a读取b\r\n"},
		{"shift_jis", "aファｱb\r\n"},
		{"big5", "a讀b"},
		{"euc-kr", "a설b"},
		{"windows-1252", "a€é"},
	} {
		raw := encoded(t, c.name, c.text)
		e, _ := named(c.name)
		if e.codec == nil {
			e, _ = Detect(raw)
		}
		text := Decode(raw, e)
		body := strings.TrimPrefix(text.String, "\ufeff")
		if body != c.text {
			t.Errorf("%s: decoded %q, want %q", c.name, body, c.text)
		}
		lead := len(text.String) - len(body)
		for i, r := range body {
			part := raw[text.Offset(lead+i):text.Offset(lead+i+len(string(r)))]
			if back, err := e.Encode(string(r)); err != nil || string(back) != string(part) {
				t.Errorf("%s: %q is % x at its offset, % x encoded (%v)", c.name, r, part, back, err)
			}
		}
	}
}

func TestEncodeNamesWhatIsLost(t *testing.T) {
	e, _ := named("windows-1252")
	_, err := e.Encode("a → b")
	var l *Lossy
	if !errors.As(err, &l) || l.Rune != '→' || l.Encoding != "windows-1252" {
		t.Errorf("got %v", err)
	}
}

// Any bytes decode without loss of position: the offsets ascend from the first byte to the last.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"abc", "\xff\xfea\x00", "\xfe\xff\x00a\xd8", "\x82\xa0\x83A\x81", "\xb6\xc1\xc8\xa1\xff", "a\r\n\xe9"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, _ := DetectWhole(raw)
		for _, e := range append([]Encoding{e}, legacies(t)...) {
			text := Decode(raw, e)
			last := 0
			for at := range text.String {
				if o := text.Offset(at); o < last || o > len(raw) {
					t.Fatalf("%s: offset of %d is %d after %d, of %d bytes", e.Name(), at, o, last, len(raw))
				} else {
					last = o
				}
			}
			if got := text.Offset(len(text.String)); got != len(raw) {
				t.Fatalf("%s: the end is %d of %d", e.Name(), got, len(raw))
			}
		}
	})
}

func legacies(t *testing.T) (all []Encoding) {
	for _, name := range []string{"gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "windows-1252", "koi8-r"} {
		e, ok := named(name)
		if !ok {
			t.Fatal(name)
		}
		all = append(all, e)
	}
	return all
}

// TestPatchHasContext: where equal lines can be matched in several ways, there is context behind what changes all the same. Without
// it a patch holds at the end of a file only.
func TestPatchHasContext(t *testing.T) {
	const before, after = "a\nc\nb\nlong\n\nb\na\nc\nb\nc\nb\n\n", "a\nc\nb\nlonc\n\nb\nc\nb\n\n"
	for _, swap := range []bool{false, true} {
		old, next := before, after
		if swap {
			old, next = next, old
		}
		diff := Patch("f", old, next)
		lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
		for _, line := range lines[len(lines)-3:] {
			if line[0] != ' ' {
				t.Errorf("the last three lines are no context of\n%s", diff)
				break
			}
		}
	}
}

// The diff, as another program reads it, makes the new text of the old one.
func TestPatchApplies(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("needs patch")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "long line\n"})
		old := strings.Join(rapid.SliceOfN(line, 1, 40).Draw(t, "old"), "")
		at := rapid.IntRange(0, len(old)).Draw(t, "at")
		end := min(at+rapid.IntRange(0, 12).Draw(t, "cut"), len(old))
		next := old[:at] + strings.Join(rapid.SliceOfN(line, 0, 4).Draw(t, "new"), "") + old[end:]
		if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		diff := Patch(path, old, next)
		if (diff == "") != (old == next) {
			t.Fatalf("diff %q", diff)
		}
		cmd := exec.Command("patch", "--quiet", "--no-backup-if-mismatch", "--fuzz=0", path)
		cmd.Stdin = strings.NewReader(diff)
		if out, err := cmd.CombinedOutput(); err != nil && diff != "" {
			t.Fatalf("%v: %s\n%s", err, out, diff)
		}
		got, err := os.ReadFile(path)
		if os.IsNotExist(err) && next == "" {
			return // patch takes away what becomes empty
		}
		if string(got) != next || strings.Contains(diff, "No newline") && strings.HasSuffix(next, "\n") && strings.HasSuffix(old, "\n") {
			t.Fatalf("patched to %q, want %q\n%s", got, next, diff)
		}
	})
}

func TestSnippet(t *testing.T) {
	var b strings.Builder
	for i := 'a'; i <= 'z'; i++ {
		b.WriteString(string(i) + "\r\n")
	}
	got := Snippet(b.String(), []Span{{2, 2}, {15, 15}})
	want := "     1\ta\n     2\tb\n     3\tc\n     4\td\n     5\te\n     6\tf\n...\n    11\tk\n    12\tl\n    13\tm\n    14\tn\n    15\to\n    16\tp\n    17\tq\n    18\tr\n    19\ts\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	long := Snippet(strings.Repeat("x\n", 500), []Span{{1, 500}})
	if strings.Count(long, "\n") != maxSnippet+1 || !strings.Contains(long, "left out") {
		t.Errorf("a long snippet ends in %q", long[len(long)-80:])
	}
	if s := Snippet("a\xffb", []Span{{1, 1}}); s != "     1\ta\ufffdb\n" {
		t.Errorf("got %q", s)
	}
}
