package daemon

import "time"

// SetGrace changes how long the calls of a client that went away go on. Before Serve.
func (d *Daemon) SetGrace(grace time.Duration) { d.grace = grace }
