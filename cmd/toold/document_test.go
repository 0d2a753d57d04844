package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"testing"
)

// paper is a PDF document of one page.
func paper(text string) []byte {
	content := "BT /F 24 Tf 72 700 Td (" + text + ") Tj ET"
	var out, table bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	for i, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(content), content), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	} {
		fmt.Fprintf(&table, "%010d 00000 n \n", out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	at := out.Len()
	fmt.Fprintf(&out, "xref\n0 6\n0000000000 65535 f \n%strailer\n<</Root 1 0 R/Size 6>>\nstartxref\n%d\n%%%%EOF\n", &table, at)
	return out.Bytes()
}

// TestDocument: a PDF document is read by a process of its own, and the result says how that was confined.
func TestDocument(t *testing.T) {
	environ, ws := home(t)
	file := filepath.Join(ws, "a.pdf")
	put(t, file, string(paper("Hello there")))
	out, err := self(t, t.Context(), environ, ws, "call", "Read", fmt.Sprintf(`{"file_path":%q}`, file), "--json").CombinedOutput()
	for _, want := range []string{`Hello there`, `"sandbox": ?"SANDBOX_TIER_(FAST|FULL)"`, `"tier": ?"SANDBOX_TIER_(FAST|FULL)"`} {
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Errorf("%v\n%s\nwant %s in it", err, out, want)
		}
	}
}
