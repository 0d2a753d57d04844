// Text shown and changed by the user: pretty JSON, coloured diffs, the user's own editor.

package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"

	"charm.land/lipgloss/v2"
)

// editText runs the user's editor on text and returns what they left. No other user can read the file.
func editText(terminal *os.File, text string) (edited string, err error) {
	dir, err := os.MkdirTemp("", "toold-edit-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := dir + "/input.json"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return "", err
	}
	editor := "vi"
	for _, variable := range []string{"EDITOR", "VISUAL"} {
		if set := os.Getenv(variable); set != "" {
			editor = set
		}
	}
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", name) // as git does: EDITOR may hold arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Run(); err != nil {
		return "", err
	}
	left, err := os.ReadFile(name)
	return string(left), err
}

// Pretty indents JSON; text that is none stays as it is.
func Pretty(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text + "\n"
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Indent returns text with each line indented by two spaces and a newline at its end.
func Indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// DiffText shows a unified diff, each line behind indent.
func DiffText(diff string, k Ink, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(VisibleText(diff)) {
		line = strings.TrimSuffix(line, "\n")
		var style lipgloss.Style
		switch word, _, _ := strings.Cut(line, " "); {
		case word == "diff", word == "+++", word == "---":
			style = k.Strong
		case strings.HasPrefix(line, "@@"):
			style = k.Name
		case strings.HasPrefix(line, "+"):
			style = k.Good
		case strings.HasPrefix(line, "-"):
			style = k.Bad
		}
		b.WriteString(indent + paint(style, line) + "\n")
	}
	return b.String()
}

// paint styles text, except for its tabs.
func paint(style lipgloss.Style, text string) string {
	return style.TabWidth(lipgloss.NoTabConversion).Render(text)
}
