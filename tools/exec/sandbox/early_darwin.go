package sandbox

// earlyShells: there are none, since the memory of another process cannot be written.
type earlyShells struct{}

// Prepare does nothing.
func (r *Runner) Prepare(Command) {}

func (r *Runner) takeEarly(Command) *Process { return nil }
func (r *Runner) closeEarly()                {}

// Waiting returns 0.
func (r *Runner) Waiting() int { return 0 }

// SetMemoryShort does nothing.
func (r *Runner) SetMemoryShort(bool) {}
