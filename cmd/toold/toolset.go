// The literal list of the tools that the daemon is built with. Groups of them can be left out of a build: no_web, no_lsp and
// no_mcp are Go build tags.

package main

import (
	"slices"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/mcp"
	"github.com/toold/toold/tools/memory"
	"github.com/toold/toold/tools/notebook"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/todo"
	"github.com/toold/toold/tools/toolsearch"
	"github.com/toold/toold/tools/write"
)

// toolset is every tool of this build. The pool puts them into order.
func toolset(files settingsFiles) []tools.Tool {
	return slices.Concat([]tools.Tool{
		read.Tool(), write.Tool(), edit.Tool(), edit.MultiTool(), edit.PatchTool(), notebook.Tool(), glob.Tool(), grep.Tool(), ls.Tool(),
		bash.Tool(), bash.OutputTool(), bash.InputTool(), bash.KillTool(), bash.ShellTool(), todo.Tool(), toolsearch.Tool(), memory.Tool(),
	}, webTools(files), languageTools())
}

// groups returns of each group that can be left out whether it is in this build.
func groups() (in, out []string) {
	for _, g := range []struct {
		name  string
		built bool
	}{{"web", webBuilt}, {"lsp", languagesBuilt}, {"mcp", mcp.Built}} {
		if g.built {
			in = append(in, g.name)
		} else {
			out = append(out, g.name)
		}
	}
	return in, out
}
