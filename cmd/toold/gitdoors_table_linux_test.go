package main

// The doors of git as testdata/gitdoors/*.txt has them, and the table of the open ones in docs/security.md.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/golden"
)

// A door is one way to make the user's git run a program.
//
// "door NAME" begins a door. The lines below it are:
//
//	root DIR...          what the session works in; main if there is no such line
//	do LINE              a line of a script that the session's Bash runs as "sh ./work0.sh"
//	background LINE      the same, in the background
//	call                 ends a script; the next line is of another one
//	write PATH TEXT      a call of Write
//	edit PATH TEXT       a call of Edit that puts TEXT in place of all that is there
//	read PATH            a call of Read
//	bash COMMAND         a call of Bash
//	then COMMAND         what the user does afterwards, in the root
//	open TIER...: WHY    where the door is known to be open
//
// A door with a line "write", "edit" or "bash" is tried in the mode acceptEdits, where no client answers. ROOT stands
// for the root. In the user's commands MARK is the file that the program makes.
type door struct {
	group string // the file's name
	name  string
	roots []string
	steps []act
	then  string
	open  []string // tiers
	why   string
}

// An act is one call of the session.
type act struct{ kind, what, text string }

// byFileTool reports whether it is a call that acceptEdits may let through.
func (a act) byFileTool() bool { return slices.Contains([]string{"write", "edit", "bash"}, a.kind) }

// gitDoors reads all doors.
func gitDoors(t *testing.T) (doors []door) {
	t.Helper()
	files, err := filepath.Glob("testdata/gitdoors/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	for _, file := range files {
		var d *door
		for line := range strings.Lines(content(t, file)) {
			kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			switch {
			case kind == "" || kind == "#":
			case kind == "door":
				group := strings.TrimSuffix(filepath.Base(file), ".txt")
				doors = append(doors, door{group: group, name: rest, roots: []string{"main"}})
				d = &doors[len(doors)-1]
			case d == nil || !d.read(kind, rest):
				t.Fatalf("%s: %q is no line of a door", file, line)
			}
		}
	}
	return doors
}

// read takes one line of the door.
func (d *door) read(kind, rest string) bool {
	switch kind {
	case "root":
		d.roots = strings.Fields(rest)
	case "do", "background":
		if n := len(d.steps); n > 0 && d.steps[n-1].kind == kind {
			d.steps[n-1].what += "\n" + rest
			break
		}
		d.steps = append(d.steps, act{kind: kind, what: rest})
	case "read", "bash", "call":
		d.steps = append(d.steps, act{kind: kind, what: rest})
	case "write", "edit":
		path, text, _ := strings.Cut(rest, " ")
		text = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(text)
		d.steps = append(d.steps, act{kind: kind, what: path, text: text})
	case "then":
		d.then += rest + "\n"
	case "open":
		tiers, why, _ := strings.Cut(rest, ": ")
		d.open, d.why = strings.Fields(tiers), why
	default:
		return false
	}
	return true
}

// byFileTools reports whether the door is tried without a script that does what it wants.
func (d *door) byFileTools() bool {
	return slices.ContainsFunc(d.steps, act.byFileTool)
}

// docs/security.md shows which doors of git are open.
func TestGitDoorsDocument(t *testing.T) {
	const begin, end = "<!-- git doors -->\n", "<!-- end of git doors -->"
	path := filepath.FromSlash("../../docs/security.md")
	before, rest, ok := strings.Cut(content(t, path), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	want := gitDoorsTable(gitDoors(t))
	if golden.Updates() {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != want {
		t.Errorf("%s does not show the doors of git: run the test with -update\n%s", path, want)
	}
}

// gitDoorsTable shows the doors that are open, those that are so in the same tiers for the same reason together.
func gitDoorsTable(doors []door) string {
	var rows []string
	named := map[string]string{}
	for _, d := range doors {
		if d.open == nil {
			continue
		}
		row := strings.Join(d.open, ", ") + " | " + d.why
		if named[row] == "" {
			rows = append(rows, row)
			named[row] = d.name
			continue
		}
		named[row] += "; " + d.name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nOf %d doors, these are open:\n\n| door | tier | why |\n|---|---|---|\n", len(doors))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", named[row], row)
	}
	fmt.Fprint(&b, "\n")
	return b.String()
}
