package edit

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
	"pgregory.net/rapid"

	"github.com/toold/toold/tools/fs/workspace/text"
)

var loneCR = regexp.MustCompile(`\r([^\n]|$)`)

// holdsItsBytes makes the replacement in raw and checks what must hold of any: the text is what a plain replacement in
// the folded text gives, and bytes outside the matches are those of before.
func holdsItsBytes(t interface{ Fatalf(string, ...any) }, raw []byte, r Replacement) (done bool) {
	e, isText := text.DetectWhole(raw)
	if !isText || r.OldString == "" || loneCR.MatchString(r.OldString+"|"+r.NewString) {
		return false
	}
	p := &plan{raw: raw, doc: text.Decode(raw, e)}
	if loneCR.MatchString(p.doc.String) {
		return false
	}
	before := p.doc
	f, err := find(before.String, r)
	if err != nil || p.apply(r, true) != nil {
		return false
	}
	past := max(f.past, endings)
	want := strings.ReplaceAll(fold(before.String, past).text, fold(r.OldString, past).text, fold(r.NewString, past).text)
	if f.past == literal {
		want = fold(strings.ReplaceAll(before.String, r.OldString, r.NewString), endings).text
	}
	if got := fold(p.doc.String, past).text; got != want {
		t.Fatalf("%s, tolerance %d\nfile %q\nold  %q\nnew  %q\ngot  %q\nwant %q", e.Name(), f.past, before.String, r.OldString, r.NewString, got, want)
	}
	first, last := f.matches[0], f.matches[len(f.matches)-1]
	if head := raw[:before.Offset(first.from)]; !bytes.HasPrefix(p.raw, head) {
		t.Fatalf("%s: bytes before the match changed\nfrom % x\nto   % x", e.Name(), raw, p.raw)
	}
	if tail := raw[before.Offset(last.to):]; !bytes.HasSuffix(p.raw, tail) {
		t.Fatalf("%s: bytes behind the match changed\nfrom % x\nto   % x", e.Name(), raw, p.raw)
	}
	return true
}

// In any encoding and with any mixture of line endings, an edit changes what it was asked to and nothing else.
func TestBytesOutsideTheMatchStay(t *testing.T) {
	encodings := map[string][]string{
		"utf-8":        {"ein ", "Wort ", "größer ", "日本 ", "😀", "“x” ", "it’s ", "\"y\" "},
		"utf-16le":     {"ein ", "Wort ", "größer ", "日本 ", "😀", "“x” ", "it’s ", "\"y\" "},
		"windows-1252": {"ein ", "Wort ", "größer ", "naïve ", "“x” ", "it’s ", "\"y\" "},
		"gbk":          {"int ", "读取配置文件 ", "如果不存在 ", "使用默认值 ", "“配置” ", "\"y\" "},
		"shift_jis":    {"int ", "これはです ", "ファイルを ", "設定ソ表 ", "\"y\" "},
	}
	names := []string{"gbk", "shift_jis", "utf-16le", "utf-8", "windows-1252"}
	done := 0
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "encoding")
		part := rapid.SampledFrom(append([]string{"\n", "\r\n", "\t", "a ", "b "}, encodings[name]...))
		parts := rapid.SliceOfN(part, 3, 30).Draw(t, "file")
		from := rapid.IntRange(0, len(parts)-1).Draw(t, "from")
		old := strings.Join(parts[from:rapid.IntRange(from+1, len(parts)).Draw(t, "to")], "")
		next := strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "new"), "")
		switch rapid.SampledFrom([]string{"as it is", "LF", "ASCII", "keep some"}).Draw(t, "seen as") {
		case "LF":
			old, next = fold(old, endings).text, fold(next, endings).text
		case "ASCII":
			old, next = fold(old, quotes).text, fold(next, quotes).text
		case "keep some":
			next = old[:strings.LastIndexAny(" "+old, " \n")] + next
		}
		raw := encode(t, name, strings.Join(parts, ""))
		if holdsItsBytes(t, raw, Replacement{OldString: old, NewString: next, ReplaceAll: rapid.Bool().Draw(t, "all")}) {
			done++
		}
	})
	if done == 0 {
		t.Error("no edit was made")
	}
}

func encode(t *rapid.T, name, s string) []byte {
	enc, err := htmlindex.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := enc.NewEncoder().Bytes([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	if name == "utf-16le" {
		out = append([]byte{0xFF, 0xFE}, out...)
	}
	return out
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte("one\r\ntwo\n“three”\r\n"), "two\n\"three\"", "2\n\"3\"\n", false)
	f.Add([]byte("\xff\xfea\x00\r\x00\n\x00b\x00"), "a\nb", "c", true)
	f.Add([]byte("caf\xe9 \xe9t\xe9"), "é", "è", true)
	f.Add([]byte("\xb6\xc1\xc8\xa1\xc5\xe4\xd6\xc3 \\"), "配", "默", false)
	f.Add([]byte("aaaa\xff\xc3"), "aa", "\r\n", true)
	f.Fuzz(func(t *testing.T, raw []byte, old, next string, all bool) {
		holdsItsBytes(t, raw, Replacement{OldString: strings.ToValidUTF8(old, "?"), NewString: strings.ToValidUTF8(next, "?"), ReplaceAll: all})
	})
}
