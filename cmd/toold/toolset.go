// The literal list of the tools that the daemon serves. It does not know what they do.

package main

import (
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/todo"
	"github.com/toold/toold/tools/write"
)

// toolset is in the order in which models see the tools; the order is part of what they are used to.
func toolset() []tools.Tool {
	return []tools.Tool{
		read.Tool(), write.Tool(), edit.Tool(), edit.MultiTool(), glob.Tool(), grep.Tool(), ls.Tool(),
		bash.Tool(), bash.OutputTool(), bash.KillTool(), todo.Tool(),
	}
}
