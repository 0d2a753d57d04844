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
		websearch.Tool(agent, func() (backend websearch.Backend) {
			if set := store.Load(settings.Scope{}).WebSearch; set != nil {
				backend = websearch.Backend{Kind: set.Backend, URL: set.URL, Key: os.Getenv("BRAVE_API_KEY")}
			}
			return backend
		}),
	}
}
