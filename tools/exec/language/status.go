package language

// A Status is how a server of a Set does.
type Status struct {
	Language string
	Root     string // which it was started for
	State    string // "starting", "ready" or "failed": it has ended or did not start, and was not started again
	Why      string // why it did not start; empty: not known, or it did
}
