// Remarks about an answer: that there are no entries, that there are more, what was left out.

package lsp

import (
	"fmt"

	"github.com/toold/toold/tools/fs/workspace/text"
)

// nothing is the text for an answer without entries, by operation.
var nothing = map[string]string{
	"definition":        "The server has no definition for that position.",
	"references":        "The server has no references for that position.",
	"implementation":    "The server has no implementation for that position.",
	"hover":             "The server has no description for that position.",
	"document_symbols":  "The file has no symbols.",
	"workspace_symbols": "The server has no symbol with a name like that.",
	"call_hierarchy":    "The server has no function at that position.",
	"diagnostics":       "No errors or warnings.",
	"rename_preview":    "The renaming would change nothing.",
}

// nouns are the names of the entries.
var nouns = map[string]string{
	"document_symbols": "symbol", "workspace_symbols": "symbol", "call_hierarchy": "function", "diagnostics": "diagnostic", "rename_preview": "file",
}

func (c *call) remarks() (remarks []string) {
	f := &c.found
	unsure := f.Busy != "" || f.Incomplete && f.Operation == "diagnostics"
	switch noun := nouns[f.Operation]; {
	case f.Total == 0 && f.Denied == 0 && unsure:
		remarks = append(remarks, "The server has returned nothing so far.")
	case f.Total == 0 && f.Denied == 0:
		remarks = append(remarks, nothing[f.Operation])
	case f.Shown < f.Total:
		if noun == "" {
			noun = "place"
		}
		remarks = append(remarks, fmt.Sprintf("Showing the first %d of %s.", f.Shown, text.Count(f.Total, noun)))
	}
	if f.Elsewhere > 0 {
		remarks = append(remarks, fmt.Sprintf("The text of %s is not shown: it is outside the working directory, or must not be read.", text.Count(f.Elsewhere, "entry")))
	}
	if f.Denied > 0 {
		remarks = append(remarks, fmt.Sprintf("Left out: %s in files that a rule denies reading.", text.Count(f.Denied, "entry")))
	}
	switch {
	case f.Busy != "":
		remarks = append(remarks, fmt.Sprintf("Incomplete: the server is still working (%s). Ask again for the rest.", f.Busy))
	case f.Incomplete && f.Operation == "diagnostics":
		remarks = append(remarks, "Incomplete: the server has not reported on the present text in time. Ask again.")
	}
	return remarks
}
