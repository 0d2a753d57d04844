//go:build !no_lsp

package main

import (
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/lsp"
)

const languagesBuilt = true

func languageTools() []tools.Tool { return []tools.Tool{lsp.Tool()} }
