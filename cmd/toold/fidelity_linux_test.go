package main

// What a result says of a command beside its exit: the order of its outputs, the outputs themselves, its memory. What the text
// of a result looks like is not known here.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestMergedOutput(t *testing.T) { merged(t, ordinary(t)) }

func TestMergedOutputWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	merged(t, ordinary(t))
}

// merged: through one pipe the order of stdout and stderr is exact, in either tier; through two each is told as it was printed.
func merged(t *testing.T, h *house) {
	t.Helper()
	c := h.attach(t, in(h.room(t, "merged", nil), nil))
	var exact strings.Builder
	for i := range 300 {
		fmt.Fprintf(&exact, "o%de%d\nO%d\nE%d\n", i, i, i, i)
	}
	const script = "for ((i = 0; i < 300; i++)); do printf o$i; printf \"e$i\\n\" >&2; echo O$i; echo E$i >&2; done"
	for name, tail := range map[string]string{"only reads": "", "writes": "; touch f"} {
		r := c.call(name, map[string]any{"command": script + tail, "merged_output": true})
		if textIn(r) != exact.String() {
			t.Errorf("%s: the order is another:\n%.300s", name, textIn(r))
		}
		of := r.GetStructured().AsMap()
		expect(t, name, fmt.Sprint(of["merged_output"], of["stdout"], of["stderr"], of["stderr_bytes"], of["stdout_bytes"]), fmt.Sprint(true, nil, nil, 0, exact.Len()))
		r = c.call(name+", apart", map[string]any{"command": "echo out; printf '\\033[1mno\\n' >&2" + tail})
		of = r.GetStructured().AsMap()
		expect(t, name, fmt.Sprintf("%v %q %q", of["merged_output"], of["stdout"], of["stderr"]), `<nil> "out\n" "\x1b[1mno\n"`)
	}
	r := c.call("long", map[string]any{"command": "head -c 4096 /dev/zero | tr '\\0' x; head -c 4097 /dev/zero | tr '\\0' x >&2; exit 3"})
	of := r.GetStructured().AsMap()
	if text, _ := of["stdout"].(string); len(text) != 4096 || of["stderr"] != nil || outcome(r) != "ERROR exit_code" {
		t.Errorf("%s with %d bytes of stdout, and %v", outcome(r), len(text), of["stderr"])
	}
	r = c.call("bytes", map[string]any{"command": "printf 'a\\377'"})
	expect(t, "what is no text", fmt.Sprint(r.GetStructured().AsMap()["stdout"], textIn(r)), "<nil>a\uFFFD")
	ownMemory(t, c)
}

// ownMemory: the memory of a small command is not that of the daemon, and of a large one it is known.
func ownMemory(t *testing.T, c *talk) {
	t.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	const small = 16 << 20
	large := max(200_000_000, own.Maxrss*1024*5/4) // more than the daemon, which runs in this process
	for _, command := range []string{"true", "true; touch f"} {
		r := c.call("small "+command, map[string]any{"command": command})
		if of, _ := r.GetStructured().AsMap()["max_rss_bytes"].(float64); of > small || r.GetUsage().GetPeakMemoryBytes() > small {
			t.Errorf("%s takes %.0f bytes, or %d", command, of, r.GetUsage().GetPeakMemoryBytes())
		}
	}
	r := c.call("large", map[string]any{"command": fmt.Sprintf(`printf -v x "%%%ds" .; touch f`, large)})
	if of, _ := r.GetStructured().AsMap()["max_rss_bytes"].(float64); of < float64(large) || float64(r.GetUsage().GetPeakMemoryBytes()) != of {
		t.Errorf("it takes %.0f bytes, or %d", of, r.GetUsage().GetPeakMemoryBytes())
	}
}

// call runs a command with what else its input has. Questions get a yes.
func (c *talk) call(id string, input map[string]any) *tooldv1.ToolResult {
	c.t.Helper()
	text, err := json.Marshal(input)
	if err != nil {
		c.t.Fatal(err)
	}
	c.use(id, "Bash", string(text))
	return c.finish(id, yes)
}

func TestProtectedNames(t *testing.T) { protectedNames(t, ordinary(t)) }

func TestProtectedNamesWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	protectedNames(t, ordinary(t))
}

// protectedNames: what a program makes unnamed where other programs would obey it does not stay, and a tool that would write
// there asks, although a rule allows it.
func protectedNames(t *testing.T, h *house) {
	t.Helper()
	root := h.room(t, "protected", nil)
	c := h.attach(t, in(root, &tooldv1.Options{SettingsJson: proto.String(`{"permissions": {"allow": ["Bash", "Edit"]}}`)}))
	names := []string{
		".cursor/mcp.json", ".zed/tasks.json", ".helix/config.toml", ".codex/config.toml", ".gemini/settings.json", ".hg/hgrc", ".Rprofile",
		".nvimrc", ".dir-locals.el", ".pdbrc", ".githooks/pre-commit", ".github/workflows/ci.yml", "mise.toml",
	}
	put(t, filepath.Join(root, "list"), strings.Join(names, "\n")+"\n")
	put(t, filepath.Join(root, "made.sh"), "while read -r name; do case $name in */*) mkdir -p ${name%/*} ;; esac; echo made >$name && echo made $name; done <list\n")
	r := c.run("made", "sh made.sh")
	if moved := len(r.GetConfinement().GetDenials()); strings.Count(textIn(r), "made ") < len(names) || moved < len(names) {
		t.Errorf("%d were noticed: %s, %s", moved, outcome(r), textIn(r))
	}
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
			t.Errorf("%s holds %q after %s: %s", name, text, outcome(r), textIn(r))
		}
		c.use(name, "Write", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, filepath.Join(root, name)))
		expect(t, name, outcome(c.finish(name, no)), "DENIED client_denied")
	}
	r = c.run("free", "echo x > .hgignore; mkdir -p .github; echo x > .github/CODEOWNERS")
	expect(t, "what nothing runs", outcome(r), "OK")
}

func TestScannedPDF(t *testing.T) { scannedPDF(t, ordinary(t)) }

func TestScannedPDFWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	scannedPDF(t, ordinary(t))
}

// aScan is a PDF document of one page that is an image of two pixels, and has no text.
const aScan = `%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [3 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 4 0 R /Resources << /XObject << /I 5 0 R >> >> >>
endobj
4 0 obj
<< /Length 28 >>
stream
q 200 0 0 100 0 0 cm /I Do Q
endstream
endobj
5 0 obj
<< /Type /XObject /Subtype /Image /Width 2 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray /Length 2 >>
stream
 z
endstream
endobj
`

// scannedPDF: a page without text comes as an image, and the document as a whole where that is asked for.
func scannedPDF(t *testing.T, h *house) {
	t.Helper()
	document, offsets := aScan, ""
	for n := range 5 {
		offsets += fmt.Sprintf("%010d 00000 n \n", strings.Index(document, fmt.Sprintf("%d 0 obj\n", n+1)))
	}
	document += fmt.Sprintf("xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", offsets, len(aScan))
	path := filepath.Join(h.room(t, "scan", map[string]string{"scan.pdf": document}), "scan.pdf")
	c := h.attach(t, in(filepath.Dir(path), nil))
	for as, want := range map[string]string{"": "text image/png", "image": "text image/png", "text": "text", "document": "application/pdf"} {
		c.use("as "+as, "Read", fmt.Sprintf(`{"file_path":%q%s}`, path, map[bool]string{true: fmt.Sprintf(`,"as":%q`, as)}[as != ""]))
		r := c.finish("as "+as, no)
		var kinds []string
		for _, block := range r.GetContent() {
			kinds = append(kinds, cmp.Or(block.GetImage().GetMediaType(), block.GetDocument().GetMediaType(), "text"))
		}
		expect(t, "as "+as, outcome(r)+" "+strings.Join(kinds, " "), "OK "+want)
		if d := r.GetContent()[0].GetDocument(); as == "document" && string(d.GetData()) != document {
			t.Errorf("the document has %d bytes, want %d", len(d.GetData()), len(document))
		}
	}
}
