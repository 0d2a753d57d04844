// What is said of an answer beside its entries: that there are none, that there are more, what was left out. It does not
// look at the entries.

package lsp

import (
	"fmt"

	"github.com/toold/toold/tools/workspace/text"
)

// nothing is what is said of an answer without entries, by operation.
var nothing = map[string]string{
	"definition":        "The server knows no definition of what stands there.",
	"references":        "The server knows no uses of what stands there.",
	"implementation":    "The server knows no implementation of what stands there.",
	"hover":             "The server has nothing to say of what stands there.",
	"document_symbols":  "The file has no symbols.",
	"workspace_symbols": "The server knows no symbol of a name like that.",
	"call_hierarchy":    "There is no function there that the server knows.",
	"diagnostics":       "No errors or warnings.",
	"rename_preview":    "The renaming would change nothing.",
}

// nouns are what the entries are.
var nouns = map[string]string{
	"document_symbols": "symbol", "workspace_symbols": "symbol", "call_hierarchy": "function", "diagnostics": "diagnostic", "rename_preview": "file",
}

func (c *call) remarks() (remarks []string) {
	f := &c.found
	unsure := f.Busy != "" || f.Incomplete && f.Operation == "diagnostics"
	switch noun := nouns[f.Operation]; {
	case f.Total == 0 && f.Denied == 0 && unsure:
		remarks = append(remarks, "The server has named nothing so far.")
	case f.Total == 0 && f.Denied == 0:
		remarks = append(remarks, nothing[f.Operation])
	case f.Shown < f.Total:
		if noun == "" {
			noun = "place"
		}
		remarks = append(remarks, fmt.Sprintf("Showing the first %d of %s.", f.Shown, text.Count(f.Total, noun)))
	}
	if f.Elsewhere > 0 {
		remarks = append(remarks, fmt.Sprintf("Of %s the text is not shown: outside of the working directory, or not to be read.", text.Count(f.Elsewhere, "entry")))
	}
	if f.Denied > 0 {
		remarks = append(remarks, fmt.Sprintf("Left out: %s in files that a rule denies reading.", text.Count(f.Denied, "entry")))
	}
	switch {
	case f.Busy != "":
		remarks = append(remarks, fmt.Sprintf("Incomplete: the server is still at work (%s). Ask again for the rest.", f.Busy))
	case f.Incomplete && f.Operation == "diagnostics":
		remarks = append(remarks, "Incomplete: the server has not said in time what it finds in the present text. Ask again.")
	}
	return remarks
}
