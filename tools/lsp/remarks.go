// Remarks about an answer: that there are no entries, that there are more, what was left out.

package lsp

import (
	"fmt"

	"github.com/toold/toold/tools/fs/workspace/text"
)

func (c *call) remarks() (remarks []string) {
	f := &c.found
	unsure := f.Busy != "" || f.Incomplete && f.Operation == "diagnostics"
	switch asked := questions[f.Operation]; {
	case f.Total == 0 && f.Denied == 0 && unsure:
		remarks = append(remarks, "The server has returned nothing so far.")
	case f.Total == 0 && f.Denied == 0:
		remarks = append(remarks, asked.none)
	case f.Shown < f.Total:
		remarks = append(remarks, fmt.Sprintf("Showing the first %d of %s.", f.Shown, text.Count(f.Total, asked.noun)))
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
