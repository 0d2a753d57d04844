package conformance_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A model is a server that imitates the APIs of models: the n-th request to an API is answered with the n-th of its recorded
// streams, in which $ROOT is the directory of the task. It notes what the requests have brought.
type model struct {
	*httptest.Server
	mu       sync.Mutex
	requests []map[string]any
}

// recordings are the files with the streams of each API, by the path of its requests.
var recordings = map[string]string{"/v1/messages": "messages.sse", "/v1/chat/completions": "chat.sse", "/v1/responses": "responses.sse"}

func newModel(t *testing.T, root string) *model {
	m := &model{}
	streams := map[string][]string{}
	for path, file := range recordings {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		streams[path] = strings.Split(strings.ReplaceAll(string(text), "$ROOT", root), "### the next turn\n")
	}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		var request map[string]any
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &request)
		}
		rest := streams[r.URL.Path]
		if err != nil || len(rest) == 0 || request["stream"] != true {
			t.Errorf("a request to %s that nothing answers: %v\n%s", r.URL.Path, err, body)
			http.Error(w, `{"error":{"type":"invalid_request_error","message":"no stream is recorded"}}`, http.StatusBadRequest)
			return
		}
		m.requests = append(m.requests, request)
		streams[r.URL.Path] = rest[1:]
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range strings.Split(strings.TrimSpace(rest[0]), "\n\n") {
			_, _ = io.WriteString(w, event+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// conversation returns the conversation of the last request.
func (m *model) conversation() []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return nil
	}
	last := m.requests[len(m.requests)-1]
	for _, field := range []string{"messages", "input"} {
		if list, ok := last[field].([]any); ok {
			return list
		}
	}
	return nil
}

// environment returns the variables by which the SDKs find the server.
func (m *model) environment() []string {
	return []string{"ANTHROPIC_BASE_URL=" + m.URL, "ANTHROPIC_API_KEY=none", "OPENAI_BASE_URL=" + m.URL + "/v1", "OPENAI_API_KEY=none", "OPENAI_AGENTS_DISABLE_TRACING=1"}
}
