//go:build !no_web

package main

// The tools that reach out to the web. WebSearch needs the user's settings; the engine, and a key that is not in a file,
// are looked up at each call.

import (
	"os"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/webfetch"
	"github.com/toold/toold/tools/websearch"
)

const webBuilt = true

func webTools(files settingsFiles) []tools.Tool {
	agent := "toold/" + version + " (+https://github.com/toold/toold)"
	store := files.store()
	return []tools.Tool{
		webfetch.Tool(agent),
		websearch.Tool(agent, func() (websearch.Backend, bool) {
			said := store.Load(settings.Scope{}).WebSearch
			if said == nil {
				return websearch.Backend{}, false
			}
			return websearch.Backend{Kind: said.Backend, URL: said.URL, Key: os.Getenv("BRAVE_API_KEY")}, true
		}),
	}
}
