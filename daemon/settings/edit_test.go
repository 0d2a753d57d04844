package settings_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tailscale/hujson"
	"pgregory.net/rapid"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
)

// checkRuleAdded holds for any bytes: what comes out is what went in with one piece more, or two where a comment stands behind
// the last entry, and means the same with one rule more at the end of the list. It reports whether the bytes were accepted.
func checkRuleAdded(t rapid.TB, before []byte, list permission.List, rule string) bool {
	t.Helper()
	after, err := settings.WithRule("file", before, list, rule)
	if err != nil {
		return false
	}
	then := meaning(t, before)
	permissions, _ := then["permissions"].(map[string]any)
	old, _ := permissions[list.String()].([]any)
	if after == nil {
		for _, have := range old {
			if text, ok := have.(string); ok && strings.TrimSpace(text) == rule {
				return true
			}
		}
		t.Fatalf("nothing would be written, and %q has no %s rule %q", before, list, rule)
	}
	if rest := missing(before, after); rest != "" {
		t.Fatalf("%q became %q, which has lost %q", before, after, rest)
	}
	if permissions == nil {
		permissions = map[string]any{}
		then["permissions"] = permissions
	}
	permissions[list.String()] = append(old, rule)
	if now := meaning(t, after); !reflect.DeepEqual(now, then) {
		t.Fatalf("%q became %q, which means %v, want %v", before, after, now, then)
	}
	if again, err := settings.WithRule("file", after, list, rule); err != nil || again != nil {
		t.Fatalf("a second time %q became %q, %v", after, again, err)
	}
	return true
}

// meaning returns the content of a settings file.
func meaning(t rapid.TB, text []byte) (content map[string]any) {
	t.Helper()
	plain, err := hujson.Standardize(bytes.Clone(bytes.TrimPrefix(text, []byte("\ufeff"))))
	if err == nil {
		err = json.Unmarshal(plain, &content)
	}
	if err != nil {
		t.Fatalf("%q is not JSON and was accepted: %v", text, err)
	}
	return content
}

// missing returns the end of before from the first byte that is not in after, in its order.
func missing(before, after []byte) string {
	for i, b := range before {
		at := bytes.IndexByte(after, b)
		if at < 0 {
			return string(before[i:])
		}
		after = after[at+1:]
	}
	return ""
}

var (
	blanks = rapid.StringMatching(`([ \t]|\r?\n|/\*[a-c]?\*/|//[",\]]\n){0,3}`)
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
		return "[" + strings.Join(parts, ",") + end(t, parts) + "]"
	}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		key := words.Draw(t, "key")
		kind := map[string]string{`"permissions"`: "object", `"deny"`: "list", `"allow"`: "list"}[key]
		parts = append(parts, blank()+key+blank()+":"+blank()+value(t, depth-1, kind)+blank())
	}
	return "{" + strings.Join(parts, ",") + end(t, parts) + "}"
}

// end draws what stands before a closing bracket.
func end(t *rapid.T, parts []string) string {
	if len(parts) > 0 && !rapid.Bool().Draw(t, "comma") {
		return ""
	}
	blank := blanks.Draw(t, "inside")
	if len(parts) > 0 {
		return "," + blank
	}
	return blank
}

func TestAddingARuleKeepsTheRest(t *testing.T) {
	t.Parallel()
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		text := blanks.Draw(t, "before") + value(t, 4, "object") + blanks.Draw(t, "after")
		list := rapid.SampledFrom([]permission.List{permission.DenyList, permission.AllowList}).Draw(t, "list")
		rule := rapid.SampledFrom([]string{"Bash(new)", "a", `Bash(echo "<\é>" && x)`}).Draw(t, "rule")
		if checkRuleAdded(t, []byte(text), list, rule) {
			taken++
		}
	})
	if taken == 0 {
		t.Error("no text was taken: the property says nothing")
	}
}

func FuzzAddRule(f *testing.F) {
	for _, text := range []string{
		"{}", "{\n}", `{"permissions":{"deny":["a"]}}`, "{\r\n\t\"permissions\": {\n\n \"deny\": [\r\n]}}", "\ufeff{\"a\":[]}",
		`{"permissions":{},"permissions":{"deny":[],"deny":[1]}}`, `{"permissions":null}`, "{\"a\":\n1}", "{// a\n\"permissions\": {\"deny\": [1, /* b */ // c\n],},}",
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
		checkRuleAdded(t, text, permission.DenyList, rule)
	})
}
