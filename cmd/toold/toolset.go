// The literal list of the tools that the daemon serves. It does not know what they do.

package main

import (
	"os"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/edit"
	"github.com/toold/toold/tools/glob"
	"github.com/toold/toold/tools/grep"
	"github.com/toold/toold/tools/ls"
	"github.com/toold/toold/tools/notebook"
	"github.com/toold/toold/tools/read"
	"github.com/toold/toold/tools/todo"
	"github.com/toold/toold/tools/webfetch"
	"github.com/toold/toold/tools/websearch"
	"github.com/toold/toold/tools/write"
)

// toolset is in the order in which models see the tools; the order is part of what they are used to. WebSearch is there if
// the settings name a search engine now; what they say of it later counts from call to call.
func toolset(files settingsFiles) []tools.Tool {
	sources := settings.DefaultSources(files.user)
	sources.ManagedDir = files.managed
	store := settings.Open(sources)
	now := func() *settings.Settings { return store.Load(settings.Scope{}) }
	agent := "toold/" + version + " (+https://github.com/toold/toold)"
	list := []tools.Tool{
		read.Tool(), write.Tool(), edit.Tool(), edit.MultiTool(), notebook.Tool(), glob.Tool(), grep.Tool(), ls.Tool(),
		bash.Tool(), bash.OutputTool(), bash.KillTool(),
		webfetch.Tool(agent, func() (allowed, denied []string) { return now().Reach() }),
	}
	if now().WebSearch != nil {
		list = append(list, websearch.Tool(agent, func() (websearch.Backend, bool) { return backendOf(now().WebSearch) }))
	}
	return append(list, todo.Tool())
}

// backendOf adds the key, which stands in no file.
func backendOf(said *settings.WebSearch) (websearch.Backend, bool) {
	if said == nil {
		return websearch.Backend{}, false
	}
	return websearch.Backend{Kind: said.Backend, URL: said.URL, Key: os.Getenv("BRAVE_API_KEY")}, true
}
