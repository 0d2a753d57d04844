//go:build no_web

package main

import "github.com/toold/toold/tools"

const webBuilt = false

func webTools(settingsFiles) []tools.Tool { return nil }
