//go:build no_lsp

package main

import "github.com/toold/toold/tools"

const languagesBuilt = false

func languageTools() []tools.Tool { return nil }
