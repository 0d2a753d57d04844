package sandbox

// An Exit is how a tree has ended.
type Exit struct {
	Code   int    // of the main process; -1 if a signal has ended it, or if it is stuck
	Signal string // "SIGTERM", ...; empty if it ended by itself
	// LeftBehind are the processes that were still running when the main process had ended, and
	// were killed then.
	LeftBehind []Left
	// Kept are the processes that continue, as Command.Keep has decided. Only Main sets it.
	Kept []Left
	// Stuck are the processes that the kernel still holds although they were killed.
	Stuck []Left
	// MaxRSS is the peak memory, in bytes, of the largest process of the tree that was collected; 0:
	// it is not known, and at most what the daemon itself has held.
	MaxRSS  int64
	Stopped bool  // Stop was called before the main process had ended
	Output  error // why the output is incomplete; nil: it is complete
	// Denials are the noticed denials, at most 50 of them: first those of files that were moved
	// away.
	Denials []Denial
	// Created are the paths on the disk at which the tree was about to make a new file, as far as
	// that is noticed: in Full, and at most 256 of them.
	Created []string
}

// A Left is a process that outlived its call.
type Left struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // its command line, at most 80 characters
}
