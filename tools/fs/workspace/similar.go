// Suggestions for a name that does not exist.

package workspace

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/text/nearest"
)

// NotFound are the Details of file_not_found and path_not_found.
type NotFound struct {
	Path             string   `json:"path"`
	WorkingDirectory string   `json:"workingDirectory"`
	Similar          []string `json:"similar,omitempty"` // absolute paths in the same directory, the most similar first
	Parent           string   `json:"parent,omitempty"`  // the deepest existing directory on the way, if it is not the file's own
}

const (
	maxSimilar = 5
	maxLooked  = 10_000 // directory entries that are examined, so that a huge directory takes no longer than a large one
)

func (v *View) notFound(p Path) *fault.Error {
	details := v.lookAround(p)
	return fault.Invalidf("file_not_found", "%s does not exist.%s", p.Shown(), details.hint()).With(details)
}

func (n NotFound) hint() string {
	var b strings.Builder
	if len(n.Similar) > 0 {
		fmt.Fprintf(&b, " Did you mean %s?", strings.Join(n.Similar, " or "))
	} else if n.Parent != "" {
		fmt.Fprintf(&b, " Its directory does not exist either; the deepest one that does is %s.", n.Parent)
	}
	fmt.Fprintf(&b, " The working directory is %s.", n.WorkingDirectory)
	return b.String()
}

// lookAround finds names similar to p's. It reports nothing about directories that the session may
// not read.
func (v *View) lookAround(p Path) NotFound {
	n := NotFound{Path: p.Name(), WorkingDirectory: v.grant.Dir}
	dir, base := filepath.Split(p.Real)
	dir = filepath.Clean(dir)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		for ; err != nil || !info.IsDir(); info, err = os.Lstat(dir) {
			if dir == "/" {
				return n
			}
			dir = filepath.Dir(dir)
		}
		n.Parent = shown(dir)
		return n
	}
	if place := v.ws.Place(dir); place == Outside || place == Hidden {
		return n
	}
	root, err := v.ws.openRoot(dir)
	if err != nil {
		return n
	}
	defer root.Close()
	var names []string
	for e, err := range Entries(root.Open(".")) {
		if err != nil || len(names) == maxLooked {
			break
		}
		names = append(names, e.Name())
	}
	for _, name := range similar(base, names) {
		if len(n.Similar) == maxSimilar {
			break
		}
		real := filepath.Join(dir, name)
		if info, err := os.Lstat(real); err == nil && v.ws.whyReadDenied(real, info.Mode().Type(), v.grant.ReadDenied) == "" {
			n.Similar = append(n.Similar, shown(real))
		}
	}
	return n
}

// similar returns the names that may have been meant by base, the most likely first.
func similar(base string, names []string) []string {
	distance := map[string]int{}
	for _, name := range names {
		if d := unlikeness(base, name); d >= 0 {
			distance[name] = d
		}
	}
	return slices.SortedFunc(maps.Keys(distance), func(a, b string) int {
		return cmp.Or(cmp.Compare(distance[a], distance[b]), cmp.Compare(a, b))
	})
}

// unlikeness returns 0 for names that differ only in case, a larger number for less similar ones,
// and a negative one for unrelated names.
func unlikeness(a, b string) int {
	la, lb := strings.ToLower(a), strings.ToLower(b)
	stemA, stemB := strings.TrimSuffix(la, filepath.Ext(la)), strings.TrimSuffix(lb, filepath.Ext(lb))
	switch {
	case la == lb:
		return 0
	case stemA == stemB && stemA != "":
		return 1
	}
	if d := nearest.Distance(la, lb); d <= max(1, min(len(la), len(lb))/4) {
		return 1 + d
	}
	if short := min(len(stemA), len(stemB)); short >= 4 && (strings.Contains(stemA, stemB) || strings.Contains(stemB, stemA)) {
		return 100
	}
	return -1
}
