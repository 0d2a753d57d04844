package settings

import "time"

// Limits bound what the daemon accepts and keeps.
type Limits struct {
	MaxRunningCalls  int           // calls of one principal that run at once
	Host             HostLimits    // of what takes up the machine
	OpenCalls        int           // calls of one session that have not ended
	Sessions         int           // open sessions of one principal
	MessageBytes     int           // largest message taken from a client
	OutputBytes      int64         // output that one call may write
	SessionOutput    int64         // output that the calls of one session may keep together
	PrincipalOutput  int64         // output that those of all sessions of one principal may keep
	AllOutput        int64         // output that those of all sessions may keep
	Drain            time.Duration // how long a shutdown waits for running calls
	Idle             IdleLimits    // after which what nothing uses ends
	DetachedQuestion time.Duration // how long a question waits while no client is attached
	HeldConnection   time.Duration // how long a connection to a host waits for the answer to a question
	HeldCall         time.Duration // how long those of one call wait together
	JournalSession   int64         // bytes that one session's records may have
	JournalBytes     int64         // bytes that those of all sessions may have
	JournalAge       time.Duration // how long a record, or a closed session, is kept
	Buffers          HeldBytes     // bytes of text in clients' editors
	Options          HeldBytes     // bytes of sessions' options and environments
	ToolDefinitions  HeldBytes     // bytes of the definitions of tools that clients run
	CheckpointBytes  int64         // bytes that what calls have changed may take; 0: nothing is kept
	CheckpointAge    time.Duration // how long it is kept
	SearchBytes      int64         // bytes of memory for what searches have found; 0: nothing is remembered
	CacheDays        int           // days after which what calls have written to caches goes, if no session has used it
}

// HeldBytes bound what clients have the daemon hold in memory: of one session, of all sessions of one principal, and of
// the whole daemon.
type HeldBytes struct{ Session, Principal, All int64 }

// IdleLimits bound how long something goes on that nothing uses.
type IdleLimits struct {
	Session time.Duration // a session without stream, running call or background task closes after this
	MCP     time.Duration // an MCP server without a call is stopped after this; 0: no limit
	Exit    time.Duration // a daemon that a client started ends after this without anything to do
}

// HostLimits bound the calls of all principals that start programs and may change something.
type HostLimits struct {
	RunningCalls  int           // at once
	Wait          time.Duration // how long a call waits to be one of them
	Quick         time.Duration // how long one runs at most that does not wait behind longer ones; 0: none is such a one
	MemoryReserve int64         // bytes of memory that stay available; 0: a tenth of all, at least 256 MiB
}

// Default returns the limits of a daemon without settings.
func Default() (l Limits) {
	limitKeys(&l)
	return l
}
