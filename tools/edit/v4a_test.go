package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// corpus returns the patches of testdata.
func corpus(t testing.TB) (patches []*txtar.Archive, names []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/patches/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d patches, %v", len(files), err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		patches, names = append(patches, a), append(names, strings.TrimSuffix(filepath.Base(file), ".txtar"))
	}
	return patches, names
}

func fileOf(a *txtar.Archive, name string) (content string, there bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

// FuzzPatch: no text breaks the parser, and what a patch is applied to changes only where a hunk says so.
func FuzzPatch(f *testing.F) {
	all, _ := corpus(f)
	for _, a := range all {
		p, _ := fileOf(a, "patch")
		for _, file := range a.Files {
			if strings.HasPrefix(file.Name, "before/") {
				f.Add(p, string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, input, doc string) {
		p, err := parsePatch(input)
		if err != nil {
			if fault.From(err).Code != "invalid_patch" {
				t.Fatalf("%v for %q", err, input)
			}
			return
		}
		for i := range p {
			s := &p[i]
			if s.path == "" || strings.Contains(s.path+s.to, "\n") {
				t.Fatalf("a part for %q to %q in %q", s.path, s.to, input)
			}
			if s.act != update {
				continue
			}
			done, err := s.apply(doc)
			if err != nil {
				if fault.From(err).Code != "no_match" {
					t.Fatalf("%v for %q", err, input)
				}
				continue
			}
			checkPieces(t, doc, s, done.pieces)
		}
	})
}

// checkPieces checks that pieces are in order and within the text, and make as many lines fewer or more as the hunks say.
func checkPieces(t *testing.T, doc string, s *section, pieces []piece) {
	t.Helper()
	at := 0
	for _, p := range pieces {
		if p.from < at || p.to < p.from || p.to > len(doc) {
			t.Fatalf("the pieces %v of a text of %d bytes", pieces, len(doc))
		}
		at = p.to
	}
	next, err := splice([]byte(doc), text.Decode([]byte(doc), text.Encoding{}), pieces)
	if err != nil {
		t.Fatal(err)
	}
	grown := 0
	for _, h := range s.hunks {
		for _, line := range h.lines {
			grown += map[byte]int{'+': 1, '-': -1}[line[0]]
		}
	}
	// Where the last line goes, or the first comes, the break before it stays.
	if got := strings.Count(string(next), "\n") - strings.Count(doc, "\n"); got < grown-1 || got > grown+1 {
		t.Fatalf("%d lines more, want %d: from %q to %q by %+v", got, grown, doc, next, s.hunks)
	}
}

// A sided is a diff that both implementations apply.
type sided struct {
	Text   string `json:"text"`
	Diff   string `json:"diff"`
	Create bool   `json:"create"`
	name   string
}

// theirs applies the diffs with @openai/agents.
func theirs(t *testing.T, all []sided) (results []struct{ Text, Error *string }) {
	t.Helper()
	const packages = "../../clients/typescript"
	node, err := exec.LookPath("node")
	if _, there := os.Stat(packages + "/node_modules/@openai/agents"); err != nil || there != nil {
		const lacks = `there is no Node with @openai/agents, which "make clients" installs`
		if os.Getenv("TOOLD_CI") != "" {
			t.Fatal(lacks)
		}
		t.Skip(lacks)
	}
	var in, failed bytes.Buffer
	for _, s := range all {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	run := exec.Command(node, "testdata/applydiff.mjs", packages)
	run.Stdin, run.Stderr = &in, &failed
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failed.Bytes())
	}
	for line := range bytes.Lines(out) {
		var r struct{ Text, Error *string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	if len(results) != len(all) {
		t.Fatalf("%d results of %d", len(results), len(all))
	}
	return results
}

// ours applies a diff as the tool does.
func ours(s sided) (string, error) {
	header := "*** Update File: f\n"
	if s.Create {
		header = "*** Add File: f\n"
	}
	p, err := parsePatch("*** Begin Patch\n" + header + s.Diff + "\n*** End Patch")
	switch {
	case err != nil:
		return "", err
	case s.Create:
		return strings.TrimSuffix(p[0].content, "\n"), nil // they leave the last break out
	}
	done, err := p[0].apply(s.Text)
	if err != nil {
		return "", err
	}
	out, err := splice([]byte(s.Text), text.Decode([]byte(s.Text), text.Encoding{}), done.pieces)
	return string(out), err
}

// departures are the patches of testdata that @openai/agents applies in another way, with the reason.
var departures = map[string]string{
	"end-of-file":      "it takes the first place that fits, although the hunk is for the end of the file",
	"append":           "it puts the lines behind the last line break, which leaves an empty line before them and none behind",
	"no-place":         "it puts lines without a place at the beginning of the file",
	"fuzz-typographic": "it knows no typographic characters, unlike Codex",
	"trailing-blank":   "it takes the blank line for context",
	"only-context":     "it changes nothing and reports no error",
	"empty-hunk":       "the patch as a whole is not seen there",
	"second-mark":      "it ends there",
	"nothing":          "it changes nothing and reports no error",
}

// TestAsOpenAI: the patches of testdata, and random ones, come to the same in @openai/agents.
func TestAsOpenAI(t *testing.T) {
	var all []sided
	archives, names := corpus(t)
	for i, a := range archives {
		input, _ := fileOf(a, "patch")
		for _, part := range strings.Split(input, "\n*** ")[1:] {
			header, diff, _ := strings.Cut(strings.TrimSuffix(part, "\n"), "\n")
			if path, is := strings.CutPrefix(header, "Update File: "); is && departures[names[i]] == "" {
				content, there := fileOf(a, "before/"+path)
				if there && diff != "" {
					all = append(all, sided{Text: content, Diff: diff, name: names[i]})
				}
			}
			if strings.HasPrefix(header, "Add File: ") && diff != "" && !strings.HasPrefix(names[i], "bad") {
				all = append(all, sided{Diff: diff, Create: true, name: names[i]})
			}
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		all = append(all, randomDiff(random, fmt.Sprintf("random %d of seed %d", i, seed)))
	}
	applied := 0
	for i, r := range theirs(t, all) {
		got, err := ours(all[i])
		switch {
		case (err == nil) != (r.Error == nil), err == nil && got != *r.Text:
			t.Errorf("%s\n--- the text\n%s\n--- the diff\n%s\n--- ours: %v\n%s\n--- theirs: %s\n%s", all[i].name, all[i].Text, all[i].Diff, err, got, deref(r.Error), deref(r.Text))
		case err == nil:
			applied++
		}
	}
	if applied < len(all)/3 || len(all) < 2030 {
		t.Errorf("%d of %d diffs could be applied", applied, len(all))
	}
}

func deref(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// randomDiff returns a text of few different lines, and hunks that are about it, often with a mistake.
func randomDiff(r *rand.Rand, name string) sided {
	pick := func() string { return []string{"a", " b", "\tc", "d ", "e", "f", "g\t", "h", "i", "j"}[r.IntN(10)] }
	lines := make([]string, 3+r.IntN(15))
	for i := range lines {
		lines[i] = pick()
	}
	var diff []string
	for at, hunks := 0, 1+r.IntN(3); hunks > 0 && at < len(lines); hunks-- {
		mark := "@@"
		if at += r.IntN(3); r.IntN(3) == 0 {
			mark = "@@ " + pick()
		}
		diff = append(diff, mark)
		begun := len(diff)
		for size := 1 + r.IntN(4); size > 0 && at < len(lines); size-- {
			line := lines[at]
			at++
			switch r.IntN(10) {
			case 0:
				line = strings.TrimSpace(line)
			case 1:
				line += " "
			case 2:
				if r.IntN(4) == 0 {
					line = "z"
				}
			}
			diff = append(diff, []string{" ", " ", "-"}[r.IntN(3)]+line)
			if r.IntN(3) == 0 {
				diff = append(diff, "+new"+fmt.Sprint(r.IntN(9)))
			}
		}
		if len(diff) == begun {
			diff = diff[:begun-1]
		}
	}
	if len(diff) < 2 || diff[0][0] != '@' {
		diff = []string{"@@", "-" + lines[0]}
	}
	diff = append(diff, "+last") // so that something changes
	return sided{Text: strings.Join(lines, "\n") + "\n", Diff: strings.Join(diff, "\n"), name: name}
}
