package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what a test reads of a dashboard of Grafana's.
type dashboard struct {
	UID    string
	Panels []struct {
		ID      int
		Title   string
		Targets []struct{ Expr string }
	}
}

var (
	selector  = regexp.MustCompile(`\b((?:toold|grpc|go|process)_[a-z_]+)(?:\{([^}]*)\})?`)
	grouping  = regexp.MustCompile(`\bby \(([^)]*)\)`)
	matcher   = regexp.MustCompile(`([a-z_]+)(=|!=|=~|!~)"([^"]*)"`)
	labelName = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// scraped holds the labels of each series of a page, by the series' name.
func scraped(text string) map[string][]map[string]string {
	all := map[string][]map[string]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, inner, has := strings.Cut(name, "{")
		labels := map[string]string{}
		if has {
			for _, found := range labelName.FindAllStringSubmatch(inner+" "+rest, -1) {
				labels[found[1]] = found[2]
			}
		}
		all[name] = append(all[name], labels)
	}
	return all
}

// board reads the dashboard.
func board(t *testing.T) (found dashboard) {
	t.Helper()
	text := content(t, filepath.Join("..", "..", "contrib", "grafana", "toold.json"))
	if err := json.Unmarshal([]byte(text), &found); err != nil || found.UID != "toold" || len(found.Panels) == 0 {
		t.Fatalf("the dashboard cannot be read: %v", err)
	}
	return found
}

// checkDashboard checks that each query of the dashboard has series among those scraped, and groups by labels that they have.
func checkDashboard(t *testing.T, page string) {
	t.Helper()
	board := board(t)
	doc := content(t, filepath.Join("..", "..", "docs", "operating.md"))
	series, shown, ids := scraped(page), map[string]bool{}, map[int]bool{}
	for _, panel := range board.Panels {
		if ids[panel.ID] || len(panel.Targets) == 0 {
			t.Errorf("the panel %q has the id %d, which another one has, or no query", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			for _, used := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(target.Expr, ""), -1) {
				shown[strings.TrimSuffix(used[1], "_bucket")] = true
				found := slices.DeleteFunc(slices.Clone(series[used[1]]), func(labels map[string]string) bool { return !matches(labels, used[2]) })
				if len(found) == 0 {
					t.Errorf("%q: no series for %s in %s", panel.Title, used[0], target.Expr)
					continue
				}
				for _, by := range grouping.FindAllStringSubmatch(target.Expr, -1) {
					for label := range strings.SplitSeq(by[1], ",") {
						if _, has := found[0][strings.TrimSpace(label)]; !has {
							t.Errorf("%q groups by %s, which %s does not have", panel.Title, label, used[1])
						}
					}
				}
			}
		}
	}
	for name := range series {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "toold_") && (!shown[base] || !strings.Contains(doc, "| `"+base+"` |")) {
			t.Errorf("%s is on no panel, or not in docs/operating.md", base)
		}
	}
}

func matches(labels map[string]string, matchers string) bool {
	for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
		if m[2] == "=" && labels[m[1]] != m[3] || m[2] == "!=" && labels[m[1]] == m[3] {
			return false
		}
	}
	return true
}
