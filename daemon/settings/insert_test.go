package settings_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
)

// checkInsertion holds for any bytes: what comes out is what went in with one piece more, and means the same with one
// rule more at the end of the list. It reports whether the bytes were taken.
func checkInsertion(t rapid.TB, before []byte, list permission.List, rule string) bool {
	t.Helper()
	at, piece, err := settings.Insertion("file", before, list, rule)
	if err != nil {
		return false
	}
	var then map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(string(before), "\ufeff")), &then); err != nil {
		t.Fatalf("%q is no JSON and was taken: %v", before, err)
	}
	permissions, _ := then["permissions"].(map[string]any)
	old, _ := permissions[list.String()].([]any)
	if piece == "" {
		for _, have := range old {
			if text, ok := have.(string); ok && strings.TrimSpace(text) == rule {
				return true
			}
		}
		t.Fatalf("nothing would be written, and %q has no %s rule %q", before, list, rule)
	}
	after := string(before[:at]) + piece + string(before[at:])
	var now map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(after, "\ufeff")), &now); err != nil {
		t.Fatalf("%q became %q: %v", before, after, err)
	}
	if permissions == nil {
		permissions = map[string]any{}
		then["permissions"] = permissions
	}
	permissions[list.String()] = append(old, rule)
	if !reflect.DeepEqual(now, then) {
		t.Fatalf("%q became %q, which means %v, want %v", before, after, now, then)
	}
	if again, more, err := settings.Insertion("file", []byte(after), list, rule); err != nil || more != "" {
		t.Fatalf("a second time %q would be put at %d of %q, %v", more, again, after, err)
	}
	return true
}

var (
	blanks = rapid.StringMatching(`([ \t]|\r?\n){0,3}`)
	words  = rapid.SampledFrom([]string{`"a"`, `"permissions"`, `"deny"`, `"allow"`, `"Bash(new)"`, `" Bash(new)"`, `"\u0000\"]"`})
)

// value draws JSON with blanks of all kinds between its parts.
func value(t *rapid.T, depth int, mostly string) string {
	if mostly == "" {
		mostly = rapid.SampledFrom([]string{"object", "list", "word", "number"}).Draw(t, "kind")
	}
	if depth == 0 && mostly != "number" {
		mostly = "word"
	}
	blank := func() string { return blanks.Draw(t, "blank") }
	var parts []string
	switch mostly {
	case "number":
		return rapid.SampledFrom([]string{"1", "-2.5e3", "true", "null"}).Draw(t, "scalar")
	case "word":
		return words.Draw(t, "word")
	case "list":
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			parts = append(parts, blank()+value(t, depth-1, "")+blank())
		}
		return "[" + strings.Join(parts, ",") + blankIfEmpty(t, parts) + "]"
	}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		key := words.Draw(t, "key")
		kind := map[string]string{`"permissions"`: "object", `"deny"`: "list", `"allow"`: "list"}[key]
		parts = append(parts, blank()+key+blank()+":"+blank()+value(t, depth-1, kind)+blank())
	}
	return "{" + strings.Join(parts, ",") + blankIfEmpty(t, parts) + "}"
}

func blankIfEmpty(t *rapid.T, parts []string) string {
	if len(parts) > 0 {
		return ""
	}
	return blanks.Draw(t, "inside")
}

func TestInsertionKeepsTheRest(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		text := blanks.Draw(t, "before") + value(t, 4, "object") + blanks.Draw(t, "after")
		list := rapid.SampledFrom([]permission.List{permission.DenyList, permission.AllowList}).Draw(t, "list")
		rule := rapid.SampledFrom([]string{"Bash(new)", "a", `Bash(echo "<\é>" && x)`}).Draw(t, "rule")
		if checkInsertion(t, []byte(text), list, rule) {
			taken++
		}
	})
	if taken == 0 {
		t.Error("no text was taken: the property says nothing")
	}
}

func FuzzInsertion(f *testing.F) {
	for _, text := range []string{
		"{}", "{\n}", `{"permissions":{"deny":["a"]}}`, "{\r\n\t\"permissions\": {\n\n \"deny\": [\r\n]}}", "\ufeff{\"a\":[]}",
		`{"permissions":{},"permissions":{"deny":[],"deny":[1]}}`, `{"permissions":null}`, "{\"a\":\n1}",
	} {
		f.Add([]byte(text), "Bash(new)")
	}
	if text, err := os.ReadFile("testdata/load/wrong.txt"); err == nil {
		_, body, _ := strings.Cut(string(text), "--\n")
		body, _, _ = strings.Cut(body, "-- want")
		f.Add([]byte(body), "a")
	}
	f.Fuzz(func(t *testing.T, text []byte, rule string) {
		rule = strings.TrimSpace(rule)
		// encoding/json takes what no settings file should hold: it is no measure there.
		if !utf8.ValidString(rule) || !utf8.Valid(text) {
			return
		}
		checkInsertion(t, text, permission.DenyList, rule)
	})
}
