// Package hook runs the programs that users have configured as hooks of tool calls, and parses
// their answers. It does not know sessions, how an answer is joined with the rules to a verdict, or
// where hooks are configured.
package hook

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/ellipsis"
)

// The events that run hooks, with their names in settings files.
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

// defaultTimeout is a hook's time limit if it has none of its own.
const defaultTimeout = 60 * time.Second

// A Hook is one program, or one URL, that receives an event. Exactly one of Command and URL is set,
// unless Broken is.
type Hook struct {
	Event   string
	Matcher string // the tools that it is for; empty or *: all of them
	If      string // a permission rule that the call must match as well; empty: none

	Command string   // a line for `sh -c`; with Args not nil, a program
	Args    []string // the program's arguments; no shell is used, and a relative program is one of the project
	URL     string   // receives the event by POST
	Headers map[string]string
	// AllowedEnvVars are the variables that Headers may refer to.
	AllowedEnvVars []string

	Timeout time.Duration // 0: 60 s
	// Block means that if the hook fails, a call that has not run yet is denied, and the output of
	// one that has succeeded is withheld.
	Block bool
	// Broken is, as a clause, why the hook cannot be run at all: it fails each time. Empty: it can.
	Broken string
	Origin permission.Origin

	subjects *regexp.Regexp   // that Matcher matches, for a hook of a Set; nil: all
	rule     *permission.Rule // of If; nil: none
}

func (h *Hook) limit() time.Duration {
	if h.Timeout <= 0 {
		return defaultTimeout
	}
	return h.Timeout
}

// String returns the hook's name for messages, without an article: its event, the beginning of what
// it runs, and its position. For a URL only the host is shown, since the rest may be a secret.
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

// shown quotes a command. A command that has quotes itself stays unchanged, unless it contains what
// must not be shown.
func shown(command string) string {
	strange := func(r rune) bool { return r == '`' || r == utf8.RuneError || !strconv.IsPrint(r) }
	if strings.ContainsAny(command, `"\`) && !strings.ContainsFunc(command, strange) {
		return "`" + command + "`"
	}
	return strconv.Quote(command)
}
