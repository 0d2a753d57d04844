package pdf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/media/pdf"
	"github.com/toold/toold/tools/tooltest"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

func TestMain(m *testing.M) {
	if code, is := pdf.Main(os.Args); is {
		syscall.Exit(code) // os.Exit takes a second under the race detector
	}
	os.Exit(tooltest.Main(m))
}

// document is a PDF with a page for each text; what stands in trailer is added to its trailer.
func document(trailer string, pages ...string) []byte {
	var out bytes.Buffer
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(pages)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, text := range pages {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", 5+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text))
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, trailer, xref)
	return out.Bytes()
}

// shows is the content of a page with those lines on it.
func shows(lines ...string) string {
	var b strings.Builder
	b.WriteString("BT /F1 24 Tf 72 700 Td 30 TL\n")
	for _, line := range lines {
		fmt.Fprintf(&b, "(%s) Tj T*\n", line)
	}
	return b.String() + "ET"
}

func box(t testing.TB) *sandbox.Box {
	t.Helper()
	runner, err := sandbox.New(filepath.Join(t.TempDir(), "processes"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Close(); err != nil {
			t.Errorf("ending the processes: %v", err)
		}
	})
	return &sandbox.Box{Runner: runner, Policy: sandbox.Policy{Tier: sandbox.Fast, Strict: true, Optional: true}}
}

// readers calls check with each reader of PDF that there is.
func readers(t *testing.T, check func(t *testing.T)) {
	t.Helper()
	t.Run("own", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		check(t)
	})
	t.Run("poppler", func(t *testing.T) {
		if _, err := exec.LookPath("pdftotext"); err != nil {
			ownspace.Lacks(t, "install poppler-utils")
		}
		check(t)
	})
}

func TestText(t *testing.T) {
	readers(t, func(t *testing.T) {
		d := pdf.Document{Data: document("", shows("first line", "second line"), shows(), shows("page three")), Call: "call", Box: box(t)}
		if n, err := d.Count(t.Context()); err != nil || n != 3 {
			t.Fatalf("%d pages, %v", n, err)
		}
		if !d.Box.Used() || len(d.Box.Denials()) > 0 {
			t.Errorf("used %v, denials %v: the program is the call's, what it was denied is not", d.Box.Used(), d.Box.Denials())
		}
		got, err := d.Text(t.Context(), 1, 3)
		if want := []string{"first line\nsecond line", "", "page three"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v %q", err, got)
		}
		if got, err := d.Text(t.Context(), 3, 3); err != nil || !slices.Equal(got, []string{"page three"}) {
			t.Errorf("page 3: %v %q", err, got)
		}
	})
}

// A document may begin with its first object right behind its first line, and say another version.
func TestHeaders(t *testing.T) {
	readers(t, func(t *testing.T) {
		for _, header := range []string{"%PDF-1.4\n", "%PDF-2.0\n", "%PDF-1.3\r\n%\xe2\xe3\n"} {
			sound := document("", shows("text"))
			data := bytes.Replace(sound, []byte("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []byte(header), 1)
			moved := len(data) - len(sound)
			data = regexp.MustCompile(`(?m)^\d{10} 00000 n|startxref\n\d+`).ReplaceAllFunc(data, func(at []byte) []byte {
				var offset int
				if _, err := fmt.Sscanf(string(at), "startxref\n%d", &offset); err == nil {
					return fmt.Appendf(nil, "startxref\n%d", offset+moved)
				}
				_, _ = fmt.Sscanf(string(at), "%d", &offset)
				return fmt.Appendf(nil, "%010d 00000 n", offset+moved)
			})
			d := pdf.Document{Data: data, Call: "call", Box: box(t)}
			if got, err := d.Text(t.Context(), 1, 1); err != nil || !slices.Equal(got, []string{"text"}) {
				t.Errorf("%q: %v %q", header, err, got)
			}
		}
	})
}

// Words that are set apart come apart, and pieces of one word come together.
func TestWords(t *testing.T) {
	readers(t, func(t *testing.T) {
		page := "BT /F1 10 Tf 72 700 Td [(Ker) 20 (ning) -400 (works)] TJ 0 -20 Td (caf\\351) Tj ET"
		d := pdf.Document{Data: document("", page), Call: "call", Box: box(t)}
		got, err := d.Text(t.Context(), 1, 1)
		if err != nil || !slices.Equal(got, []string{"Kerning works\ncafé"}) {
			t.Errorf("%v %q", err, got)
		}
	})
}

func TestUnreadable(t *testing.T) {
	sound := document("", shows("text"))
	locked := document("/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <"+strings.Repeat("41", 32)+"> /U <"+strings.Repeat("42", 32)+"> >> /ID [<41> <41>]", shows("text"))
	readers(t, func(t *testing.T) {
		damaged := func(err error) bool { _, is := errors.AsType[*pdf.DamagedError](err); return is }
		for name, c := range map[string]struct {
			data []byte
			is   func(error) bool
		}{
			"begins only": {[]byte("%PDF-1.7\n"), damaged},
			"garbage":     {[]byte("%PDF-1.7\n" + strings.Repeat("garbage ", 100) + "\n%%EOF"), damaged},
			"locked":      {locked, func(err error) bool { return errors.Is(err, pdf.ErrEncrypted) }},
			"no pages":    {document(""), func(err error) bool { return errors.Is(err, pdf.ErrEmpty) || damaged(err) }},
		} {
			if _, err := (pdf.Document{Data: c.data, Call: "call", Box: box(t)}).Count(t.Context()); !c.is(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user broke in")
		cancel(why)
		if _, err := (pdf.Document{Data: sound, Call: "call", Box: box(t)}).Count(ctx); !errors.Is(err, why) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// What poppler's programs are asked, and how their answers are taken: these play them.
func TestPoppler(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"pdfinfo":   `cat >/dev/null; echo "Title: Pages: 7"; echo "Pages:           2"`,
		"pdftotext": `printf '%s \f\001\n\n\n\377é\f' "$*"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	d := pdf.Document{Data: []byte("%PDF-"), Call: "call", Box: box(t)}
	if n, err := d.Count(t.Context()); err != nil || n != 2 {
		t.Errorf("%d pages, %v", n, err)
	}
	got, err := d.Text(t.Context(), 3, 4)
	if want := []string{"-enc UTF-8 -eol unix -f 3 -l 4 - -", "\x01\n\n\ufffdé"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %q", err, got)
	}
}

// A document that asks for endless memory costs its reader the life, and nobody else anything.
func TestMemory(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	data := bytes.Replace(document("", shows("text")), []byte("xref\n0 6\n"), []byte("xref\n2000000000 6\n"), 1)
	_, err := pdf.Document{Data: data, Call: "call", Box: box(t)}.Count(t.Context())
	if _, is := errors.AsType[*pdf.DamagedError](err); !is || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %v", err)
	}
}

// Whatever the bytes: an answer, or an error that says what is wrong with them.
func FuzzDocument(f *testing.F) {
	f.Add(document("", shows("text")))
	f.Add(document("/Encrypt 3 0 R"))
	f.Add([]byte("%PDF-1.5"))
	f.Add(scanned("/Rotate 90", whole, picture{image8 + "/ColorSpace /DeviceGray /Decode [1 0] /Filter /FlateDecode", deflated("12345678")}))
	f.Add(scanned("", whole, picture{"/Subtype /Image /Width 64 /Height 32 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter [/DCTDecode]", halves(color.White, color.Black)}))
	f.Add(scanned("", whole, picture{image8 + "/ColorSpace [/Indexed /DeviceRGB 1 <dc00000000dc>]", "12345678"}))
	f.Setenv("PATH", f.TempDir())
	where := box(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := pdf.Document{Data: data, Call: "call", Box: where}
		n, err := d.Count(t.Context())
		if err == nil {
			_, err = d.Text(t.Context(), 1, min(n, 3))
		}
		if err == nil {
			_, err = d.Image(t.Context(), 1)
		}
		_, damaged := errors.AsType[*pdf.DamagedError](err)
		if err != nil && !damaged && !errors.Is(err, pdf.ErrEncrypted) && !errors.Is(err, pdf.ErrEmpty) && !errors.Is(err, pdf.ErrUndrawable) {
			t.Errorf("%v", err)
		}
	})
}
