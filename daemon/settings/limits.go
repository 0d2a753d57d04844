// The limits that settings can set, and how they are written. Who may set which, and who keeps to them, is not known here.

package settings

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/toold/toold/scheduler/permission"
)

// Limits bound what the daemon takes on.
type Limits struct {
	MaxRunningCalls  int           // calls that run at once in the whole daemon
	OpenCalls        int           // calls of one session that have not ended
	Sessions         int           // open sessions
	MessageBytes     int           // largest message taken from a client
	OutputBytes      int64         // output that one call may write
	SessionOutput    int64         // output that the calls of one session may keep together
	AllOutput        int64         // output that those of all sessions may keep
	Drain            time.Duration // how long a shutdown waits for running calls
	SessionIdle      time.Duration // a session without stream, running call or background task closes after this
	DetachedQuestion time.Duration // how long a question waits while no client is attached
	JournalSession   int64         // bytes that one session's records may have
	JournalBytes     int64         // bytes that those of all sessions may have
	JournalAge       time.Duration // how long a record, or a closed session, is kept
	Buffers          HeldBytes     // bytes of text in clients' editors
	Options          HeldBytes     // bytes of sessions' options and environments
	ToolDefinitions  HeldBytes     // bytes of the definitions of tools that clients run
	CheckpointBytes  int64         // bytes that what calls have changed may take; 0: nothing is kept
	CheckpointAge    time.Duration // how long it is kept
	IdleExit         time.Duration // a daemon that a client started ends after this without anything to do
}

// HeldBytes bound what clients have the daemon hold in memory: of one session, of all sessions of one principal, and of
// the whole daemon.
type HeldBytes struct{ Session, Principal, All int64 }

// Default gives the limits of a daemon without settings.
func Default() Limits {
	return Limits{
		MaxRunningCalls:  max(16, 4*runtime.NumCPU()),
		OpenCalls:        1000,
		Sessions:         256,
		MessageBytes:     16 << 20,
		OutputBytes:      1 << 30,
		SessionOutput:    4 << 30,
		AllOutput:        16 << 30,
		Drain:            10 * time.Second,
		SessionIdle:      24 * time.Hour,
		DetachedQuestion: time.Hour,
		JournalSession:   64 << 20,
		JournalBytes:     1 << 30,
		JournalAge:       30 * 24 * time.Hour,
		Buffers:          HeldBytes{64 << 20, 128 << 20, 256 << 20},
		Options:          HeldBytes{2 << 20, 64 << 20, 128 << 20},
		ToolDefinitions:  HeldBytes{1 << 20, 16 << 20, 32 << 20},
		CheckpointBytes:  1 << 30,
		CheckpointAge:    30 * 24 * time.Hour,
		IdleExit:         30 * time.Minute,
	}
}

// A limit is one that a file sets.
type limit struct {
	name   string
	value  int64 // a span in nanoseconds
	origin permission.Origin
}

// A bound is how a limit is written and where it goes.
type bound struct {
	name  string
	least int64
	span  bool // a duration
	set   func(*Limits, int64)
}

// outputBytes is the one limit that a call has for itself, so that sessions and workspaces may set it too.
const outputBytes = "output_bytes"

var bounds = []bound{
	{"max_running_calls", 1, false, func(l *Limits, n int64) { l.MaxRunningCalls = int(n) }},
	{"open_calls", 1, false, func(l *Limits, n int64) { l.OpenCalls = int(n) }},
	{"sessions", 1, false, func(l *Limits, n int64) { l.Sessions = int(n) }},
	{"message_bytes", 1 << 20, false, func(l *Limits, n int64) { l.MessageBytes = int(n) }},
	{outputBytes, 1, false, func(l *Limits, n int64) { l.OutputBytes = n }},
	{"session_output_bytes", 1 << 20, false, func(l *Limits, n int64) { l.SessionOutput = n }},
	{"all_output_bytes", 1 << 20, false, func(l *Limits, n int64) { l.AllOutput = n }},
	{"drain", 0, true, func(l *Limits, n int64) { l.Drain = time.Duration(n) }},
	{"session_idle", 0, true, func(l *Limits, n int64) { l.SessionIdle = time.Duration(n) }},
	{"detached_question", 0, true, func(l *Limits, n int64) { l.DetachedQuestion = time.Duration(n) }},
	{"journal_session_bytes", 64 << 10, false, func(l *Limits, n int64) { l.JournalSession = n }},
	{"journal_bytes", 1 << 20, false, func(l *Limits, n int64) { l.JournalBytes = n }},
	{"journal_age", 0, true, func(l *Limits, n int64) { l.JournalAge = time.Duration(n) }},
	{"session_buffer_bytes", 1, false, func(l *Limits, n int64) { l.Buffers.Session = n }},
	{"principal_buffer_bytes", 1, false, func(l *Limits, n int64) { l.Buffers.Principal = n }},
	{"all_buffer_bytes", 1, false, func(l *Limits, n int64) { l.Buffers.All = n }},
	{"session_option_bytes", 1, false, func(l *Limits, n int64) { l.Options.Session = n }},
	{"principal_option_bytes", 1, false, func(l *Limits, n int64) { l.Options.Principal = n }},
	{"all_option_bytes", 1, false, func(l *Limits, n int64) { l.Options.All = n }},
	{"session_tool_bytes", 1, false, func(l *Limits, n int64) { l.ToolDefinitions.Session = n }},
	{"principal_tool_bytes", 1, false, func(l *Limits, n int64) { l.ToolDefinitions.Principal = n }},
	{"all_tool_bytes", 1, false, func(l *Limits, n int64) { l.ToolDefinitions.All = n }},
	{"checkpoint_bytes", 0, false, func(l *Limits, n int64) { l.CheckpointBytes = n }},
	{"checkpoint_age", 0, true, func(l *Limits, n int64) { l.CheckpointAge = time.Duration(n) }},
	{"idle_exit", 0, true, func(l *Limits, n int64) { l.IdleExit = time.Duration(n) }},
}

func boundNamed(name string) *bound {
	for i := range bounds {
		if bounds[i].name == name {
			return &bounds[i]
		}
	}
	return nil
}

// String gives the value as a settings file would have it.
func (l limit) String() string {
	if boundNamed(l.name).span {
		return time.Duration(l.value).String()
	}
	return strconv.FormatInt(l.value, 10)
}

// read gives the value that n stands for, or says what is expected in its place.
func (b *bound) read(n *node) (value int64, expected string) {
	if b.span {
		d, ok := span(n)
		if !ok || int64(d) < b.least {
			return 0, `a number of seconds or a text like "10s", not negative`
		}
		return int64(d), ""
	}
	whole, err := strconv.ParseInt(n.word, 10, 64)
	if n.kind != number || err != nil || whole < b.least {
		return 0, fmt.Sprintf("a whole number of at least %d", b.least)
	}
	return whole, ""
}

// span reads a duration: a number of seconds, or as Go writes it ("10s", "24h").
func span(n *node) (time.Duration, bool) {
	switch n.kind {
	case number:
		seconds, err := strconv.ParseFloat(n.word, 64)
		nanoseconds := seconds * float64(time.Second)
		return time.Duration(nanoseconds), err == nil && math.Abs(nanoseconds) < math.MaxInt64
	case text:
		d, err := time.ParseDuration(n.word)
		return d, err == nil
	}
	return 0, false
}
