package sandbox

import "os"

// outputPipe returns a pipe for what a process prints.
func outputPipe() (r, w *os.File, err error) { return os.Pipe() }
