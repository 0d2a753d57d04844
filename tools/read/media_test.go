package read_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/media/pdf"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/tooltest"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

func TestMain(m *testing.M) {
	if code, is := pdf.Main(os.Args); is {
		syscall.Exit(code) // os.Exit takes a second under the race detector
	}
	os.Exit(tooltest.Main(m))
}

// all parses, checks and runs in an environment that can start processes, and gives the whole result. What the check refuses
// the run must refuse in the same way; and the check starts no process.
func (s *session) all(t testing.TB, in call) (tools.Result, error) {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	action, err := read.Tool().Parse(data)
	if err != nil {
		return tools.Result{}, err
	}
	runner, err := sandbox.New(filepath.Join(t.TempDir(), "processes"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runner.Close(); err != nil {
			t.Errorf("ending the processes: %v", err)
		}
	})
	env := s.env()
	env.Box = &sandbox.Box{Runner: runner, Policy: sandbox.Policy{Tier: sandbox.Fast, Strict: true, Optional: true}}
	_, checked := action.Check(t.Context(), env)
	if env.Box.Used() {
		t.Error("the check has started a process")
	}
	result, err := action.Run(t.Context(), env)
	if checked != nil && tooltest.Code(checked) != tooltest.Code(err) {
		t.Errorf("the check says %v, the run %v", checked, err)
	}
	if document, ok := result.Structured.(read.Document); ok && document.TotalPages > 0 && !env.Box.Used() {
		t.Error("the process that read the document is not the call's")
	}
	s.Learn(env.Files)
	return result, err
}

func pngOf(t testing.TB, w, h int) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewRGBA(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestImage(t *testing.T) {
	s := newSession(t)
	content := pngOf(t, 40, 30)
	path := s.Put("a.png", content)
	result, err := s.all(t, call{FilePath: path})
	if err != nil || len(result.Content) != 1 || string(result.Content[0].Image.Data) != content || result.Content[0].Image.MediaType != "image/png" {
		t.Fatalf("%v %+v", err, result)
	}
	if out := result.Structured.(read.Image); out.Width != 40 || out.Height != 30 || out.Size != int64(len(content)) || out.Shown.Scaled || out.Type != "image" {
		t.Errorf("%+v", out)
	}
	if state, known := s.Known(path); !known || !state.Whole || state.Hash == "" {
		t.Errorf("read state %+v", state)
	}
}

// An image that is too large is scaled down, and the result says so.
func TestLargeImage(t *testing.T) {
	s := newSession(t)
	result, err := s.all(t, call{FilePath: s.Put("a.jpg", pngOf(t, 4000, 20))}) // the bytes decide what it is
	if err != nil || len(result.Content) != 2 || !strings.Contains(result.Content[0].Text, "4000 x 20") || !strings.Contains(result.Content[0].Text, "2000 x 10") {
		t.Fatalf("%v %+v", err, result)
	}
	if out := result.Structured.(read.Image); out.Width != 4000 || out.Shown.Width != 2000 || !out.Shown.Scaled || out.MediaType != "image/png" {
		t.Errorf("%+v", out)
	}
}

func TestSVGIsText(t *testing.T) {
	s := newSession(t)
	text, _, err := s.read(t.Context(), t, call{FilePath: s.Put("a.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n")})
	if err != nil || !strings.Contains(text, "<svg") {
		t.Errorf("%v %q", err, text)
	}
}

// paper is a PDF with a page for each text; an empty one is a page without text.
func paper(pages ...string) string {
	var out strings.Builder
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
		content := "BT /F1 24 Tf 72 700 Td (" + text + ") Tj ET"
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>", 5+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content))
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return out.String()
}

// papers are pages that name their own number.
func papers(n int) string {
	var pages []string
	for i := range n {
		pages = append(pages, fmt.Sprintf("sheet %d", i+1))
	}
	return paper(pages...)
}

func TestPDF(t *testing.T) {
	s := newSession(t)
	for _, c := range []struct {
		name, file, pages string
		as                string
		chars             int
		want              string // the text, or a part of it
		given, next       string
		code, field       string
	}{
		{name: "whole", file: papers(2), want: "--- page 1 of 2 ---\nsheet 1\n--- page 2 of 2 ---\nsheet 2", given: "1-2"},
		{name: "some", file: papers(30), pages: "13-,3,4", want: "--- page 3 of 30 ---\nsheet 3\n--- page 4 of 30 ---\nsheet 4\n--- page 13 of 30 ---\nsheet 13\n", given: "3-4,13-30"},
		{name: "more", file: papers(30), pages: "1-21", code: "invalid_input", field: "/pages", want: "at most 20"},
		{name: "ten unasked", file: papers(10), want: "sheet 10", given: "1-10"},
		{name: "eleven unasked", file: papers(11), code: "pages_needed", field: "/pages", want: "11 pages"},
		{name: "past the end", file: papers(2), pages: "3", want: "The document has 2 pages; pages=3 is past its end."},
		{name: "over the end", file: papers(2), pages: "2-9", want: "sheet 2", given: "2"},
		{name: "no text on a page", file: paper("one", ""), as: "text", want: "--- page 2 of 2 ---\n(no text on this page", given: "1-2"},
		{name: "no text at all", file: paper("", ""), as: "text", want: "probably scanned", given: "1-2"},
		{name: "no room", file: papers(3), chars: 270, want: "(there was no room for more; continue with pages=3)", given: "1-2", next: "3"},
		{name: "no room for a page", file: paper(strings.Repeat("wide ", 100)), chars: 240, want: "characters of this page left out", given: "1"},
		{name: "damaged", file: "%PDF-1.7\nbroken", code: "damaged_file", field: "/file_path", want: "PDF document"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.chars = c.chars
			result, err := s.all(t, call{FilePath: s.Put("a.pdf", c.file), Pages: c.pages, As: c.as})
			if c.code != "" {
				if f := fault.From(err); err == nil || f.Code != c.code || f.Field != c.field || !strings.Contains(f.Message, c.want) {
					t.Errorf("%v at %q", err, f.Field)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Content[0].Text; !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if out := result.Structured.(read.Document); out.Pages != c.given || out.NextPages != c.next {
				t.Errorf("%+v", out)
			}
		})
	}
}

// scans are a document with pages that are images of noise.
func scans(n int) string {
	var noise bytes.Buffer
	source, m := rand.New(rand.NewPCG(1, 2)), image.NewGray(image.Rect(0, 0, 1200, 1600))
	for i := range m.Pix {
		m.Pix[i] = uint8(source.Uint32())
	}
	_ = jpeg.Encode(&noise, m, &jpeg.Options{Quality: 60})
	var out strings.Builder
	var offsets []int
	object := func(text string) {
		offsets = append(offsets, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(offsets), text)
	}
	out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	var kids strings.Builder
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", 5+i)
	}
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d /MediaBox [0 0 600 800] >>", kids.String(), n))
	object(fmt.Sprintf("<< /Type /XObject /Subtype /Image /Width 1200 /Height 1600 /BitsPerComponent 8 /ColorSpace /DeviceGray /Filter /DCTDecode /Length %d >>\nstream\n%s\nendstream", noise.Len(), noise.String()))
	object("<< /Length 31 >>\nstream\nq 600 0 0 800 0 0 cm /Scan Do Q\n\nendstream")
	for range n {
		object("<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /XObject << /Scan 3 0 R >> >> >>")
	}
	xref := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return out.String()
}

// TestPDFForms: a document as text, as images of its pages, or whole; and pages without text as images unless asked otherwise.
func TestPDFForms(t *testing.T) {
	for _, c := range []struct {
		name, file string
		in         call
		poppler    bool   // needs it
		without    bool   // of it
		blocks     string // T text, I image, D document
		said       string // in the last text
		want       read.Document
		code       string
	}{
		{name: "scanned", file: scans(1), blocks: "TI", want: read.Document{TotalPages: 1, Pages: "1", Textless: "1", Images: "1"}},
		{name: "scanned, as text", file: scans(2), in: call{As: "text"}, blocks: "T", said: "as=image gives them", want: read.Document{TotalPages: 2, Pages: "1-2", Textless: "1-2"}},
		{name: "scanned, as images", file: scans(3), in: call{As: "image", Pages: "3"}, blocks: "TI", want: read.Document{TotalPages: 3, Pages: "3", Images: "3"}},
		{name: "without room", file: scans(9), in: call{As: "image"}, without: true, blocks: "TITITIT", said: "continue with pages=4-9", want: read.Document{TotalPages: 9, Pages: "1-3", Images: "1-3", NextPages: "4-9"}},
		{name: "whole", file: scans(1), in: call{As: "document"}, blocks: "D", want: read.Document{TotalPages: 1, Pages: "1"}},
		{name: "whole, of many pages", file: papers(300), in: call{As: "document"}, blocks: "D", want: read.Document{TotalPages: 300, Pages: "1-300"}},
		{name: "text, as text", file: papers(1), in: call{As: "text"}, blocks: "T", said: "sheet 1", want: read.Document{TotalPages: 1, Pages: "1"}},
		{name: "text, as image", file: papers(1), in: call{As: "image"}, poppler: true, blocks: "TI", want: read.Document{TotalPages: 1, Pages: "1", Images: "1"}},
		{name: "text, as image, without poppler", file: papers(2), in: call{As: "image"}, without: true, code: "program_not_found"},
		{name: "a page of each", file: paper("one", ""), without: true, blocks: "T", said: "page 2 cannot be drawn: pdftoppm is not installed", want: read.Document{TotalPages: 2, Pages: "1-2", Textless: "2"}},
		{name: "an empty page", file: paper("one", ""), poppler: true, blocks: "T", said: "--- page 2 of 2 ---\n(this page is empty)", want: read.Document{TotalPages: 2, Pages: "1-2", Textless: "2"}},
		{name: "many pages, as images", file: papers(300), in: call{As: "image"}, code: "pages_needed"},
		{name: "too many", file: papers(300), in: call{As: "image", Pages: "1-21"}, code: "invalid_input"},
		{name: "whole, with pages", file: papers(1), in: call{As: "document", Pages: "1"}, code: "invalid_input"},
		{name: "whole, too large", file: papers(1) + strings.Repeat("\n", 4_000_000), in: call{As: "document"}, code: "file_too_large"},
		{name: "no PDF", file: "text", in: call{As: "image"}, code: "invalid_input"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath("pdftoppm"); err != nil && c.poppler {
				ownspace.Lacks(t, "install poppler-utils")
			} else if c.without {
				t.Setenv("PATH", t.TempDir())
			}
			s := newSession(t)
			c.in.FilePath = s.Put("a.pdf", c.file)
			result, err := s.all(t, c.in)
			if code := tooltest.Code(err); code != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			} else if code != "" {
				return
			}
			blocks, last, bytes := "", "", 0
			for _, block := range result.Content {
				switch {
				case block.Image != nil:
					blocks, bytes = blocks+"I", bytes+len(block.Image.Data)
				case block.Document != nil && string(block.Document.Data) == c.file:
					blocks += "D"
				default:
					blocks, last = blocks+"T", block.Text
				}
			}
			got := result.Structured.(read.Document)
			c.want.Type, c.want.FilePath, c.want.Size = "pdf", got.FilePath, int64(len(c.file))
			if blocks != c.blocks || !strings.Contains(last, c.said) || got != c.want || bytes > 3_500_000 {
				t.Errorf("blocks %s (%d bytes of images), want %s; %+v, want %+v; %q", blocks, bytes, c.blocks, got, c.want, last)
			}
		})
	}
}

// notebook is one with those cells, as JSON.
func notebook(list ...string) string {
	return `{"cells":[` + strings.Join(list, ",") + `],"metadata":{"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}`
}

func codeCell(id, source string, outputs ...string) string {
	coded, _ := json.Marshal(source)
	return fmt.Sprintf(`{"cell_type":"code","id":%q,"execution_count":7,"source":%s,"outputs":[%s]}`, id, coded, strings.Join(outputs, ","))
}

func stream(text string) string {
	coded, _ := json.Marshal(text)
	return fmt.Sprintf(`{"output_type":"stream","name":"stdout","text":%s}`, coded)
}

func drawing(data string) string {
	return fmt.Sprintf(`{"output_type":"display_data","data":{"image/png":%q,"text/plain":"<Figure>"}}`, base64.StdEncoding.EncodeToString([]byte(data))+"\n")
}

func TestNotebook(t *testing.T) {
	s := newSession(t)
	figure := pngOf(t, 3, 3)
	path := s.Put("a.ipynb", notebook(
		`{"cell_type":"markdown","id":"intro","source":["# Title\n","text"]}`,
		codeCell("draw", "plot()", stream("\x1b[31mred\x1b[0m\n"), drawing(figure), stream("done")),
		`{"cell_type":"raw","source":"raw"}`,
	))
	result, err := s.all(t, call{FilePath: path})
	if err != nil || len(result.Content) != 3 {
		t.Fatalf("%v %+v", err, result)
	}
	before := "<cell id=\"intro\" type=\"markdown\">\n# Title\ntext\n</cell>\n<cell id=\"draw\" type=\"code\" language=\"python\" execution_count=\"7\">\nplot()\n</cell>\n<outputs of=\"draw\">\nred"
	behind := "done\n</outputs>\n<cell id=\"cell-2\" type=\"raw\">\nraw\n</cell>"
	if got := result.Content; got[0].Text != before || string(got[1].Image.Data) != figure || got[2].Text != behind {
		t.Errorf("got\n%s\nand\n%s", got[0].Text, got[2].Text)
	}
	if out := result.Structured.(read.Notebook); out.TotalCells != 3 || len(out.Cells) != 3 || out.Cells[1] != (read.CellFact{ID: "draw", Type: "code", Outputs: 3}) || out.Language != "python" || out.NextOffset != 0 {
		t.Errorf("%+v", out)
	}
	if state, _ := s.Known(path); !state.Whole || state.Hash == "" || len(state.Text) == 0 {
		t.Errorf("read state %+v", state)
	}
}

// What a notebook shows only a part of is said, cell by cell.
func TestNotebookInParts(t *testing.T) {
	s := newSession(t)
	var list []string
	for i := range 10 {
		list = append(list, codeCell(fmt.Sprintf("c%d", i), "x"))
	}
	path := s.Put("a.ipynb", notebook(list...))
	for _, c := range []struct {
		in    call
		chars int
		want  string
		cells int
		next  int
	}{
		{in: call{Offset: 3, Limit: 2}, want: "(cells 3 to 4 of 10 are shown; continue with offset=5)", cells: 2, next: 5},
		{in: call{Offset: 9, Limit: 2}, want: "</cell>", cells: 2},
		{in: call{Offset: 11}, want: "The notebook has 10 cells; cell 11 is past its end.", cells: 0},
		{chars: 700, want: "(cells 1 to 3 of 10 are shown; continue with offset=4)", cells: 3, next: 4},
	} {
		s.chars, c.in.FilePath = c.chars, path
		result, err := s.all(t, c.in)
		if err != nil {
			t.Fatal(err)
		}
		text := result.Content[0].Text
		if out := result.Structured.(read.Notebook); !strings.HasSuffix(text, c.want) || len(out.Cells) != c.cells || out.NextOffset != c.next {
			t.Errorf("%+v: %+v\n%s", c.in, out, text)
		}
	}
	s.chars = 0
	for name, c := range map[string]struct{ file, want string }{
		"long output":       {notebook(codeCell("a", "x", stream(strings.Repeat("log ", 5000)+"the end"))), "[10007 characters left out; jq '.cells[0].outputs[0]' through Bash prints them] ..."},
		"its end":           {notebook(codeCell("a", "x", stream(strings.Repeat("log ", 5000)+"the end"))), "the end\n</outputs>"},
		"image of no image": {notebook(codeCell("a", "x", drawing("no image"))), "[image of the kind image/png, not shown: its data is damaged"},
		"another kind":      {notebook(codeCell("a", "x", `{"output_type":"display_data","data":{"application/vnd.plotly":{}}}`)), "[output of the kind application/vnd.plotly is not shown]"},
		"many outputs":      {notebook(codeCell("a", "x", slices.Repeat([]string{stream("a\n")}, 150)...)), "a\n[50 more outputs of this cell left out; jq '.cells[0].outputs' through Bash prints them]\n</outputs>"},
		"outputs too long":  {notebook(codeCell("a", "x", slices.Repeat([]string{stream(strings.Repeat("b", 6000))}, 4)...)), "[2 more outputs of this cell left out"},
		"an image behind":   {notebook(codeCell("a", "x", stream(strings.Repeat("b", 20_000)), drawing("no image"))), "[image of the kind image/png, not shown"},
		"a giant output":    {notebook(codeCell("a", "x", stream("beg"+strings.Repeat("é", 600_000)+"end"))), "[590006 characters left out"},
		"giant and empty":   {notebook(codeCell("a", "x", stream("beg"+strings.Repeat("\x1b[0m", 300_000)+"end"))), "beg"},
		"many media types":  {notebook(codeCell("a", "x", `{"output_type":"display_data","data":{"`+strings.Repeat("x", 5000)+`":{}}}`)), strings.Repeat("x", 100) + " is not shown]"},
		"no cells":          {notebook(), "The notebook has no cells."},
		"no notebook":       {"{\n<<<<<<< HEAD\n", "     2\t<<<<<<< HEAD\n(it is named like a Jupyter notebook and shown as text: it is not JSON: on line 2"},
		"an old one":        {`{"nbformat":3,"worksheets":[]}`, "it is of nbformat 3"},
		"a long cell":       {notebook(codeCell("a", strings.Repeat("x", 200_000))), "characters of this cell left out"},
	} {
		result, err := s.all(t, call{FilePath: s.Put("b.ipynb", c.file)})
		if err != nil || !strings.Contains(result.Content[0].Text, c.want) {
			t.Errorf("%s: %v %+v", name, err, result.Content)
		}
	}
}

// The images of one result stay within the size of one, however many there are.
func TestNotebookFullOfImages(t *testing.T) {
	s := newSession(t)
	var list []string
	for i := range 15 {
		list = append(list, codeCell(fmt.Sprintf("c%d", i), "x", drawing(pngOf(t, 2, 2)), drawing(pngOf(t, 2, 2))))
	}
	result, err := s.all(t, call{FilePath: s.Put("a.ipynb", notebook(list...))})
	if err != nil || result.Structured.(read.Notebook).NextOffset != 11 {
		t.Errorf("%v %+v", err, result.Structured)
	}
	var many []string
	for range 25 {
		many = append(many, drawing(pngOf(t, 2, 2)))
	}
	result, err = s.all(t, call{FilePath: s.Put("b.ipynb", notebook(codeCell("a", "x", many...)))})
	if err != nil || !strings.Contains(result.Content[len(result.Content)-1].Text, "a result holds at most 20 images") {
		t.Errorf("%v %+v", err, result.Content[len(result.Content)-1])
	}
}

func TestTool(t *testing.T) {
	tooltest.Check(t, read.Tool(),
		tooltest.Case{Name: "text", Input: `{"file_path":"$ROOT/a.txt"}`, Files: map[string]string{"a.txt": "text\n"}},
		tooltest.Case{Name: "image", Input: `{"file_path":"$ROOT/a.png"}`, Files: map[string]string{"a.png": pngOf(t, 3000, 2)}},
		tooltest.Case{Name: "PDF", Input: `{"file_path":"$ROOT/a.pdf","pages":"2"}`, Files: map[string]string{"a.pdf": papers(3)}},
		tooltest.Case{Name: "notebook", Input: `{"file_path":"$ROOT/a.ipynb"}`, Files: map[string]string{"a.ipynb": notebook(codeCell("a", "x", stream("y")))}},
	)
}

// Whatever is asked for by pages: it is read, or refused with the field.
func FuzzPages(f *testing.F) {
	for _, list := range []string{"1-5,9", "3-", " 1 , 2 ", "0", "5-1", "99999999999999999999", "1-1-1", ","} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		data, err := json.Marshal(call{FilePath: "/x.pdf", Pages: list})
		if err != nil {
			t.Skip()
		}
		if _, err := read.Tool().Parse(data); err != nil && fault.From(err).Field != "/pages" {
			t.Errorf("%q: %v", list, err)
		}
	})
}
