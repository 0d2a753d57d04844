// Package hook runs the programs that users have put beside the calls of tools, and reads what they answer. It knows what
// a hook is given, how it is run and what its answer means; it does not know sessions, how an answer is joined with the
// rules to a verdict, or where hooks are configured.
package hook

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/ellipsis"
)

// The events that run hooks, as settings files name them.
const (
	PreToolUse         = "PreToolUse"
	PostToolUse        = "PostToolUse"
	PostToolUseFailure = "PostToolUseFailure"
	PostToolBatch      = "PostToolBatch"
	PermissionRequest  = "PermissionRequest"
	PermissionDenied   = "PermissionDenied"
	SessionStart       = "SessionStart"
	SessionEnd         = "SessionEnd"
	CwdChanged         = "CwdChanged"
	Notification       = "Notification"
)

// Events are the events that run hooks. A hook of any other event is never run.
var Events = []string{
	PreToolUse, PostToolUse, PostToolUseFailure, PostToolBatch, PermissionRequest, PermissionDenied, SessionStart,
	SessionEnd, CwdChanged, Notification,
}

// defaultTimeout is how long a hook may take that says nothing of it.
const defaultTimeout = 60 * time.Second

// A Hook is one program, or one address, that is told of an event. Exactly one of Command and URL is set, unless Broken is.
type Hook struct {
	Event   string
	Matcher string // which tools it is for; empty or *: all of them
	If      string // a permission rule that the call must meet besides; empty: none

	Command string   // a line for `sh -c`; with Args not nil, a program
	Args    []string // the program's arguments; no shell is between, and a relative program is one of the project
	URL     string   // gets the event by POST
	Headers map[string]string
	// AllowedEnvVars are the variables that may be put into Headers.
	AllowedEnvVars []string

	Timeout time.Duration // 0: 60 s
	// Block: if it fails, a call that has not run yet is denied, and the output of one that has succeeded is withheld.
	Block bool
	// Broken says as a clause why it cannot be run at all: it fails each time. Empty: it can.
	Broken string
	Origin permission.Origin
}

func (h *Hook) limit() time.Duration {
	if h.Timeout <= 0 {
		return defaultTimeout
	}
	return h.Timeout
}

// String names the hook for messages, without an article: its event, the beginning of what it runs, and its place. Of an
// address only the host is shown, since the rest may be a secret.
func (h *Hook) String() string {
	what := h.Command
	if what == "" && h.URL == "" {
		return fmt.Sprintf("%s hook (%s)", h.Event, h.Origin)
	}
	if h.URL != "" {
		what = "a URL that does not parse"
		if u, err := url.Parse(h.URL); err == nil {
			what = u.Scheme + "://" + u.Host
		}
	}
	return fmt.Sprintf("%s hook %s (%s)", h.Event, shown(ellipsis.Bytes(what, 80)), h.Origin)
}

// shown puts quotes around a command. One that has such itself stays as it was written, unless there is in it what must
// not be shown.
func shown(command string) string {
	strange := func(r rune) bool { return r == '`' || r == utf8.RuneError || !strconv.IsPrint(r) }
	if strings.ContainsAny(command, `"\`) && !strings.ContainsFunc(command, strange) {
		return "`" + command + "`"
	}
	return strconv.Quote(command)
}
