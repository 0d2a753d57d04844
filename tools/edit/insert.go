// Inserting lines at a line's number.

package edit

import (
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

func validateInsertion(r Replacement) error {
	switch {
	case r.OldString != "":
		return fault.Invalidf("invalid_input", "old_string and insert_line exclude each other. Leave old_string empty to insert, or insert_line out to replace.").At("/old_string")
	case r.ReplaceAll:
		return fault.Invalidf("invalid_input", "replace_all and insert_line exclude each other.").At("/replace_all")
	}
	return nil
}

// insertion inserts lines behind the line of that number. The file must be as it was read, since what is on a line may be
// elsewhere by now.
func insertion(env *tools.Env, c *workspace.Content, line int64, lines string) (*plan, error) {
	p, err := begin(env, c, false)
	if err != nil {
		return nil, err
	}
	if err := c.Current(); err != nil {
		return nil, err
	}
	at, last, found := behind(p.doc.String, line)
	if !found {
		return nil, fault.Invalidf("invalid_input", "insert_line is %d, and %s has %s: send a number from 0 to %d.", line, c.Path.Shown(), text.Count(last, "line"), last).At("/insert_line")
	}
	put := strings.TrimSuffix(strings.TrimSuffix(lines, "\n"), "\r")
	if ending := "\n"; at > 0 && p.doc.String[at-1] != '\n' && p.doc.String[:at] != "\ufeff" { // behind a last line that has no end
		put = ending + put
	} else {
		put += ending
	}
	raw, err := splice(p.raw, p.doc, []piece{{at, at, ended(put, endingAt(p.doc.String, max(0, at-1)))}})
	if err != nil {
		return nil, workspace.Lossy(err, "/new_string", lines)
	}
	first := int(line) + 1
	p.settle(raw, []text.Span{{First: first, Last: first + strings.Count(strings.Trim(put, "\n"), "\n")}}, 1)
	return p, nil
}

// behind returns the offset behind the line of that number, and how many lines there are.
func behind(s string, line int64) (at, lines int, found bool) {
	start := len(s) - len(strings.TrimPrefix(s, "\ufeff"))
	at, found = start, line == 0
	for rest := start; rest < len(s); {
		end := len(s)
		if n := strings.IndexByte(s[rest:], '\n'); n >= 0 {
			end = rest + n + 1
		}
		rest = end
		if lines++; int64(lines) == line {
			at, found = end, true
		}
	}
	return at, lines, found
}
