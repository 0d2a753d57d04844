// What has become of files, and messages of the wire, as they are printed.

package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// ReasonLines returns what is not done or not kept, a line for each path.
// more are not among them.
func ReasonLines(title string, reasons []*tooldv1.PathReason, more uint32) string {
	if len(reasons) == 0 {
		return ""
	}
	lines := title + "\n"
	for _, r := range reasons {
		lines += "  " + VisibleLine(r.GetPath()) + ": " + VisibleLine(r.GetReason()) + "\n"
	}
	if more > 0 {
		lines += fmt.Sprintf("  and %d more\n", more)
	}
	return lines
}

// StatText counts the lines that came and went, a line for each file.
func StatText(files []*tooldv1.FileChange, k Ink) string {
	var b strings.Builder
	var added, removed uint32
	for _, f := range files {
		added, removed = added+f.GetAdded(), removed+f.GetRemoved()
		counts := k.Good.Render(fmt.Sprintf("%6s", fmt.Sprintf("+%d", f.GetAdded()))) + " " + k.Bad.Render(fmt.Sprintf("%-6s", fmt.Sprintf("-%d", f.GetRemoved())))
		fmt.Fprintf(&b, "%s %s  %s\n", counts, VisibleLine(f.GetPath()), k.Dim.Render(changeWord(f)))
	}
	fmt.Fprintf(&b, "%s, %d lines added, %d removed\n", Count(len(files), "file"), added, removed)
	return b.String()
}

// changeWord returns what has become of a file.
func changeWord(f *tooldv1.FileChange) string {
	return cmp.Or(VisibleLine(f.GetNote()), Word(f.GetKind())+".")
}

// DiffsText shows what has become of files: coloured on a terminal, and elsewhere as it is, so that it can be applied. A file
// without a diff gets one line.
func DiffsText(files []*tooldv1.FileChange, p Terminal) string {
	var b strings.Builder
	for _, f := range files {
		switch diff := f.GetDiff(); {
		case diff == "", strings.HasPrefix(diff, "("):
			b.WriteString(p.Ink.Strong.Render(VisibleLine(f.GetPath())) + ": " + changeWord(f) + " " + VisibleLine(strings.TrimSpace(diff)) + "\n")
		case p.Terminal:
			b.WriteString(DiffText(diff, p.Ink, ""))
		default:
			b.WriteString(diff)
		}
	}
	return b.String()
}

// PrintJSON writes a message as one line.
func PrintJSON(w io.Writer, m proto.Message) error {
	text, err := WireJSON(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// WireJSON returns a message with the names that the proto files use, compact and always the same.
func WireJSON(m proto.Message) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, text) // protojson varies its spaces on purpose
	return compact.Bytes(), err
}
