//go:build !no_lsp

package language_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools/exec/language"
)

const unanswered = "has not answered"

// Whatever a server does, a call ends with a fault that says what, or with an answer, long before its own limit.
func TestServersThatKeepNoRules(t *testing.T) {
	for _, c := range []struct{ kind, code, words string }{
		{"good", "", ""},
		{"answers twice", "", ""},
		{"answers for others", "", ""},
		{"floods its standard error", "", ""},
		{"floods with findings", "", ""},
		{"floods with questions", "", ""},
		{"crashes at once", "language_server_failed", "ended with exit code 3; its last output: \"no such flag\"."},
		{"prints garbage", "language_server_failed", "was stopped because it does not keep to the protocol: "},
		{"endless header", "language_server_failed", "header"},
		{"claims a huge message", "language_server_failed", "99999999999999"},
		{"claims a negative length", "language_server_failed", "-5"},
		{"sends lists", "language_server_failed", "not a JSON object"},
		{"never answers", "language_server_failed", unanswered},
		{"stops reading", "language_server_failed", unanswered},
		{"closes its input", "language_server_failed", ""},
		{"answers nothing", "language_server_failed", unanswered},
		{"crashes in the middle", "language_server_failed", "exit code 6"},
		{"promises more than it sends", "language_server_failed", unanswered},
		{"answers something else", "language_server_failed", "does not conform to the protocol: it has a string where something else belongs."},
		{"answers with a bomb", "language_server_failed", "parts"},
		{"refuses", "language_server_refused", "not today"},
		{"puts off", "language_server_failed", "postponed the request"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s := newSession(t, own(c.kind))
			s.set.Hurry()
			if c.words == unanswered || c.kind == "closes its input" {
				s.set.Shorten()
			}
			path := s.put("a.own", "text\n")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range 2 {
				found, err := s.set.Definition(ctx, s.at(path, "te|xt"))
				if code(err) != c.code || err != nil && !strings.Contains(err.Error(), c.words) {
					t.Fatalf("%v, want %s: %s", err, c.code, c.words)
				}
				if err == nil && s.show(found) != "a.own:1:2 text" {
					t.Errorf("found %+v", found)
				}
			}
		})
	}
}

// A server that ends again and again is not started at each call: the pause grows until a call is told to do without.
func TestServersAreStartedLessAndLess(t *testing.T) {
	t.Parallel()
	s := newSession(t, own("crashes at once"))
	path := s.put("a.own", "text\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 10 {
		_, err := s.set.Definition(ctx, s.at(path, "|text"))
		if code(err) != "language_server_failed" {
			t.Fatal(err)
		}
		if strings.Contains(err.Error(), "started again in") {
			return
		}
	}
	t.Error("it is started all the time")
}

// A call that no longer waits stops nothing: the server goes on starting, and serves the next one.
func TestCallsGiveUpWaiting(t *testing.T) {
	s := newSession(t, own("never answers"))
	path := s.put("a.own", "text\n")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := s.set.Definition(ctx, s.at(path, "|text")); !errors.Is(err, why) {
		t.Error(err)
	}
}

// A server that says it is loading is waited for, but not for ever, and is said to be at it.
func TestServerThatLoads(t *testing.T) {
	s := newSession(t, own("says that it loads"))
	s.set.Shorten()
	path := s.put("a.own", "text\n")
	found, err := s.set.Definition(t.Context(), s.at(path, "te|xt"))
	if err != nil || s.show(found) != "a.own:1:2 text" {
		t.Errorf("%+v, %v", found, err)
	}
	if busy := s.set.Busy(path); busy != "Loading the world" {
		t.Errorf("busy with %q", busy)
	}
}

// What settings say is looked at for each call.
func TestSettingsChange(t *testing.T) {
	s := newSession(t)
	path := s.put("a.own", "text\n")
	ask := func(code_ string) {
		t.Helper()
		if _, err := s.set.Definition(t.Context(), s.at(path, "|text")); code(err) != code_ {
			t.Errorf("%v, want %s", err, code_)
		}
	}
	ask("no_language_server")
	if s.set.Unavailable() == "" {
		t.Error("without servers one is available")
	}
	s.servers = []language.Server{{Language: "own", Command: []string{"no-such-server"}, Extensions: []string{".own"}}}
	ask("program_not_found")
	if why := s.set.Unavailable(); !strings.Contains(why, "no-such-server") {
		t.Error(why)
	}
	s.servers = []language.Server{own("refuses")}
	ask("language_server_refused")
	s.servers = []language.Server{own("good")}
	ask("")
	if why := s.set.Unavailable(); why != "" {
		t.Error(why)
	}
	s.set.Close()
	if _, err := s.set.Definition(t.Context(), s.at(path, "|text")); !errors.Is(err, language.ErrClosed) {
		t.Error(err)
	}
}

// An edit is told what is new of it, by a server that names versions and by one that does not; by one that says nothing it is
// told nothing, in time.
func TestWatching(t *testing.T) {
	s := newSession(t, own("good"))
	path := s.put("a.own", "text\n")
	if _, err := s.set.Definition(t.Context(), s.at(path, "|text")); err != nil {
		t.Fatal(err)
	}
	texts := []string{"text\n", "an ERR\n", "new\nan ERR\n", "new\nan ERR\nERR too\n", "a WARN\nERR too\n", "text\n"}
	wants := []string{"", "1:4 error it says ERR", "", "3:1 error it says ERR", "1:3 warning it says WARN", ""}
	for i := 1; i < len(texts); i++ {
		w := s.set.Watch(t.Context(), path, []byte(texts[i-1]))
		var all []string
		for _, d := range w.New(t.Context(), []byte(texts[i])) {
			all = append(all, strings.TrimPrefix(d.String(), d.Path+":"))
		}
		if got := strings.ReplaceAll(strings.Join(all, "\n"), ": ", " "); got != wants[i] {
			t.Errorf("from %q to %q: %q, want %q", texts[i-1], texts[i], got, wants[i])
		}
	}

	s = newSession(t, own("keeps its findings"))
	s.set.Shorten()
	path = s.put("a.own", "text\n")
	if _, err := s.set.Definition(t.Context(), s.at(path, "|text")); err != nil {
		t.Fatal(err)
	}
	if w := s.set.Watch(t.Context(), path, []byte("text\n")); w != nil {
		t.Error("a text is watched that the server has said nothing of")
	}
	var nobody *language.Watching
	if found := nobody.New(t.Context(), nil); found != nil {
		t.Errorf("%+v", found)
	}
	if found, err := s.set.Diagnose(t.Context(), language.Query{Path: path, Text: os.ReadFile}); err != nil || found.Complete {
		t.Errorf("%+v, %v", found, err)
	}
}
