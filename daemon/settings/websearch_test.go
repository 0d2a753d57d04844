package settings_test

import (
	"slices"
	"strings"
	"testing"
)

// TestWebSearch: the administrator's and the user's word count, the administrator's first, and sense alone.
func TestWebSearch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file, text string
		want       string // "backend url"; empty: there is none
		warnings   int
	}{
		{"home/settings.json", `{"webSearch": {"backend": "searxng", "url": "http://127.0.0.1:8080"}}`, "searxng http://127.0.0.1:8080", 0},
		{"etc/settings.json", `{"webSearch": {"backend": "brave"}}`, "brave", 0},
		{"home/settings.json", `{"webSearch": {}}`, "", 0},
		{"home/settings.json", `{"webSearch": {"url": "http://127.0.0.1:8080"}}`, "", 1},
		{"home/settings.json", `{"webSearch": {"backend": "searxng"}}`, "", 1},
		{"home/settings.json", `{"webSearch": {"backend": "google", "url": "ftp://x"}}`, "", 2},
		{"home/settings.json", `{"webSearch": {"backend": "searxng", "url": "https://u:p@x.example"}}`, "", 1},
		{"home/settings.json", `{"webSearch": {"backend": "brave", "key": "secret"}}`, "brave", 1},
		{"home/settings.json", `{"webSearch": "searxng"}`, "", 2},
		{"w/.toold/settings.json", `{"webSearch": {"backend": "searxng", "url": "http://evil.example"}}`, "", 1},
	} {
		h := newHouse(t)
		h.write(test.file, test.text)
		got := h.load("w")
		name := ""
		if got.WebSearch != nil {
			name = strings.TrimSpace(got.WebSearch.Backend + " " + got.WebSearch.URL)
		}
		if name != test.want || len(got.Warnings) != test.warnings {
			t.Errorf("%s in %s: %q, %q; want %q and %d warnings", test.text, test.file, name, got.WarningTexts(), test.want, test.warnings)
		}
		if strings.Contains(strings.Join(got.WarningTexts(), " "), "secret") {
			t.Errorf("a warning tells what may be a secret: %q", got.WarningTexts())
		}
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", `{"permissions": {"allow": ["WebFetch(domain:127.0.0.1)", "WebFetch", "Bash(ls)"], "deny": ["WebFetch(domain:*.bad.example)"]},
		"sandbox": {"network": {"allowedDomains": ["a.example"], "deniedDomains": ["b.example"]}}}`)
	allowed, denied := h.load("w").Reach()
	if !slices.Equal(allowed, []string{"a.example", "127.0.0.1"}) || !slices.Equal(denied, []string{"b.example", "*.bad.example"}) {
		t.Errorf("allowed %q, denied %q", allowed, denied)
	}
}
