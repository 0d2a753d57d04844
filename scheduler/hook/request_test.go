package hook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/scheduler/hook"
)

// serve answers on loopback until the test ends.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func with(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAnswersToRequests(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	deny := `{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}`
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   hook.Decision
		failed string
	}{
		{"ok", with(200, ` {"hookSpecificOutput": {"permissionDecision": "allow"}}`), hook.Allow, ""},
		{"another success", with(201, deny), hook.Deny, ""},
		{"nothing", with(204, ""), hook.None, ""},
		{"an error", with(500, deny), hook.None, "answered with the status 500"},
		{"plain text", with(200, "ok"), hook.None, "answered with something that is not a JSON object"},
		{"a list", with(200, "["+deny+"]"), hook.None, "answered with something that is not a JSON object"},
		{"broken JSON", with(200, "{"), hook.None, "printed text that begins like JSON but is not valid"},
		{"huge", with(200, `{"x": "`+strings.Repeat("x", 1<<20)+`"}`), hook.None, "answered with more than 1048576 bytes"},
		{"a redirect", func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere+"/x", http.StatusTemporaryRedirect)
		}, hook.None, "a redirect to"},
		{"a redirect at home", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/other", http.StatusFound) }, hook.None, `a redirect to "/other"`},
		{"a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, hook.None, "could not be asked: EOF"},
	}
	for _, tt := range tests {
		for _, block := range []bool{false, true} {
			h := &hook.Hook{Event: hook.PreToolUse, URL: serve(t, tt.answer) + "/secret/path", Block: block, Origin: at(1)}
			got := hook.Runner{}.Run(t.Context(), []*hook.Hook{h}, input(hook.PreToolUse))
			want := tt.want
			if block && tt.failed != "" {
				want = hook.Deny
			}
			if got.Decision != want || (len(got.Failures) == 1) != (tt.failed != "") {
				t.Errorf("%s, block %v: %+v, want %v", tt.name, block, got, want)
			}
			for _, sentence := range got.Failures {
				if !strings.Contains(sentence, tt.failed) || !strings.Contains(sentence, "(/s.json:1)") || strings.Contains(sentence, "secret") {
					t.Errorf("%s: %q, want %q in it, and not the path", tt.name, sentence, tt.failed)
				}
			}
		}
	}
}

func TestRequest(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // nobody asks it
	var got *http.Request
	var body string
	to := serve(t, func(_ http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = q, string(text)
	})
	h := &hook.Hook{
		Event: hook.PostToolUse, URL: strings.Replace(to, "127.0.0.1", "0.0.0.0", 1) + "/hook?a=b", // which no proxy leaves alone
		AllowedEnvVars: []string{"A_TOKEN", "UNSET"},
		Headers: map[string]string{
			"Authorization": "Bearer $A_TOKEN", "X-Two": "${A_TOKEN}-${OTHER}-$OTHER-$A_TOKENS-$5-$", "X-Unset": "[$UNSET]",
		},
	}
	r := hook.Runner{Environ: []string{"A_TOKEN=old", "A_TOKEN=s3", "OTHER=hidden", "A_TOKENS=hidden"}}
	if result := r.Run(t.Context(), []*hook.Hook{h}, hook.Input{Event: hook.PostToolUse, Tool: "LS"}); len(result.Failures) != 0 {
		t.Fatal(result.Failures)
	}
	want := map[string]string{
		"Authorization": "Bearer s3", "X-Two": "s3-${OTHER}-$OTHER-$A_TOKENS-$5-$", "X-Unset": "[]", "Content-Type": "application/json",
	}
	headers := map[string]string{}
	for name := range want {
		headers[name] = got.Header.Get(name)
	}
	if diff := cmp.Diff(want, headers); diff != "" || got.Method != http.MethodPost || got.URL.String() != "/hook?a=b" {
		t.Errorf("%s %s\n%s", got.Method, got.URL, diff)
	}
	if want := `{"session_id":"","cwd":"","transcript_path":"","hook_event_name":"PostToolUse","tool_name":"LS"}` + "\n"; body != want {
		t.Errorf("body %s, want %s", body, want)
	}
}

// A header that cannot be sent is not shown either.
func TestHeaderThatCannotBeSent(t *testing.T) {
	t.Parallel()
	h := &hook.Hook{
		Event: hook.PostToolUse, URL: serve(t, with(200, "")), AllowedEnvVars: []string{"A"}, Headers: map[string]string{"X": "$A"},
	}
	got := hook.Runner{Environ: []string{"A=secret\nX: y"}}.Run(t.Context(), []*hook.Hook{h}, input(hook.PostToolUse))
	if len(got.Failures) != 1 || strings.Contains(got.Failures[0], "secret") {
		t.Errorf("failures %q", got.Failures)
	}
}

func TestRequestsHaveLimits(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]string{"no answer": "", "half an answer": `{"decision": "approve"}`} {
		asked := make(chan struct{}, 2) // both requests
		to := serve(t, func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body) // only then the end of the request is heard of
			if half != "" {
				_, _ = io.WriteString(w, half)
				_ = http.NewResponseController(w).Flush()
			}
			asked <- struct{}{}
			<-q.Context().Done()
		})
		h := &hook.Hook{Event: hook.PreToolUse, URL: to, Timeout: 50 * time.Millisecond}
		got := hook.Runner{}.Run(t.Context(), []*hook.Hook{h}, input(hook.PreToolUse))
		if got.Decision != hook.None || len(got.Failures) != 1 || !strings.Contains(got.Failures[0], "did not end within its limit of 50ms") {
			t.Errorf("%s: %+v", name, got)
		}
		h.Timeout = 0
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-asked; cancel(errors.New("enough")) }()
		got = hook.Runner{}.Run(ctx, []*hook.Hook{h}, input(hook.PreToolUse))
		if got.Decision != hook.None || len(got.Failures) != 1 || !strings.Contains(got.Failures[0], "was stopped with its call: enough") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAllowedURLs(t *testing.T) {
	t.Parallel()
	asked := false
	to := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	port := to[strings.LastIndex(to, ":"):]
	tests := []struct {
		url     string
		allowed []string // nil: all
		want    bool
	}{
		{to + "/a", nil, true},
		{to + "/a", []string{}, false},
		{to + "/a", []string{"*"}, true},
		{to + "/a", []string{"https://example.com/*", to + "/*"}, true},
		{to + "/a/b?c=d", []string{to + "/a/*"}, true},
		{to + "/a", []string{to + "/a"}, true},
		{to, []string{to + "/"}, true},
		{to + "/", []string{to}, true},
		{to + "/ab", []string{to + "/a"}, false},
		{to + "/a?x=y", []string{to + "/a"}, false},
		{to + "/a", []string{to}, false},
		{to + "/abcabd", []string{to + "/a*b*d"}, true},
		{to + "/ab", []string{to + "/ab*b"}, false},
		{to + "/a", []string{"http://127.0.0.1:*/*"}, true},
		{to + "/a", []string{"*://*" + port + "/*"}, true},
		{to + "/a", []string{"https://127.0.0.1:*/*"}, false},
		{to + "/a", []string{"127.0.0.1*"}, false},
		{to + "/example.com/", []string{"http://*example.com/*"}, false},
		{"http://example.com@127.0.0.1" + port + "/", []string{"http://example.com*/*"}, false},
		{to + "/a/../b", []string{to + "/a/*"}, false},
		{to + "/a/%2e%2e/b", []string{to + "/a/*"}, false},
		{"file:///etc/passwd", nil, false},
		{"gopher://127.0.0.1" + port, nil, false},
		{"http:///x", nil, false},
		{"http://[", nil, false},
	}
	for _, tt := range tests {
		asked = false
		h := &hook.Hook{Event: hook.PostToolUse, URL: tt.url}
		got := hook.Runner{AllowedURLs: tt.allowed}.Run(t.Context(), []*hook.Hook{h}, input(hook.PostToolUse))
		if asked != tt.want || (len(got.Failures) == 0) != tt.want {
			t.Errorf("%s with %q: asked %v, %+v", tt.url, tt.allowed, asked, got)
		}
	}
}
