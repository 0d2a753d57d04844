//go:build !no_lsp

// What a server sends on its own: requests, diagnostics, and progress of loading. Nothing here
// waits, since the connection reads nothing meanwhile.

package language

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/sourcegraph/jsonrpc2"
)

// incoming is the handler of one server's connection.
type incoming struct{ *server }

// Handle handles a notification, or answers a request.
func (s incoming) Handle(ctx context.Context, conn *jsonrpc2.Conn, message *jsonrpc2.Request) {
	params := json.RawMessage("null")
	if message.Params != nil {
		params = *message.Params
	}
	if message.Notif {
		s.notice(message.Method, params)
		return
	}
	answer, known := s.answer(message.Method, params)
	if !known {
		_ = conn.ReplyWithError(ctx, message.ID, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "not served here"})
		return
	}
	_ = conn.Reply(ctx, message.ID, answer)
}

// notice handles a notification. An invalid one is ignored.
func (s incoming) notice(method string, params json.RawMessage) {
	switch method {
	case "textDocument/publishDiagnostics":
		var p wirePublication
		if json.Unmarshal(params, &p) == nil {
			s.news.publish(p)
		}
	case "$/progress":
		var p wireProgress
		if json.Unmarshal(params, &p) == nil {
			s.news.progress(p)
		}
	}
}

// answer returns the answer to a request; known is false for an unexpected one.
func (s incoming) answer(method string, params json.RawMessage) (answer any, known bool) {
	switch method {
	case "workspace/configuration":
		var asked struct {
			Items []struct{} `json:"items"`
		}
		_ = json.Unmarshal(params, &asked) // an invalid request asks for nothing
		answers := make([]json.RawMessage, min(len(asked.Items), 100))
		for i := range answers {
			answers[i] = s.spec.options()
		}
		return answers, true
	case "workspace/workspaceFolders":
		return []wireFolder{{uriOf(s.root), filepath.Base(s.root)}}, true
	case "workspace/applyEdit":
		return map[string]any{"applied": false, "failureReason": "a language server changes no files here"}, true
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest",
		"workspace/diagnostic/refresh", "workspace/semanticTokens/refresh", "workspace/inlayHint/refresh", "workspace/codeLens/refresh":
		return json.RawMessage("null"), true
	}
	return nil, false
}
