// The requested pages of a document, as numbers.

package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// Limits of one call on a document. They are part of the tool's contract with models.
const (
	maxPages    = 20 // pages of one call
	maxUnasked  = 10 // pages of a document that is shown completely without pages in the input
	maxListings = 100
)

// A pageRange is a run of pages, both ends included, from 1. last 0: to the end.
type pageRange struct{ first, last int }

// parsePages parses a list such as 1-5,9,12-. The error is a fault invalid_input.
func parsePages(list string) (ranges []pageRange, err error) {
	wrong := fault.Invalidf("invalid_input", "pages is %.60q; it is a list of page numbers and ranges such as 1-5,9.", list).At("/pages")
	parts := strings.Split(list, ",")
	if len(parts) > maxListings {
		return nil, wrong
	}
	for _, part := range parts {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		r := pageRange{}
		if r.first, err = strconv.Atoi(strings.TrimSpace(from)); err != nil || r.first < 1 {
			return nil, wrong
		}
		switch to = strings.TrimSpace(to); {
		case !isRange:
			r.last = r.first
		case to != "":
			if r.last, err = strconv.Atoi(to); err != nil || r.last < r.first {
				return nil, wrong
			}
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// within returns the runs of pages in ranges that a document of count pages has, in their order and
// each once, and how many pages that are.
func within(ranges []pageRange, count int) (runs []pageRange, pages int) {
	slices.SortFunc(ranges, func(a, b pageRange) int { return a.first - b.first })
	for _, r := range ranges {
		if r.last == 0 || r.last > count {
			r.last = count
		}
		if len(runs) > 0 {
			before := &runs[len(runs)-1]
			if r.first <= before.last+1 {
				before.last = max(before.last, r.last)
				continue
			}
		}
		if r.first <= r.last {
			runs = append(runs, r)
		}
	}
	for _, r := range runs {
		pages += r.last - r.first + 1
	}
	return runs, pages
}

// listing writes runs of pages as the input takes them.
func listing(runs []pageRange) string {
	var parts []string
	for _, r := range runs {
		if r.first == r.last {
			parts = append(parts, strconv.Itoa(r.first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.first, r.last))
		}
	}
	return strings.Join(parts, ",")
}
