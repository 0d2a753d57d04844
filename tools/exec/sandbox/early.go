package sandbox

import "os"

// An Early is what Start needs to use a bash that was started beforehand instead of starting one,
// see [Runner.Prepare]. What the script can see is the same in both but for the trailing NULs of its
// command line in /proc, the age of its process, and what the prelude leaves behind.
type Early struct {
	Script string   // the last of Args
	Env    []string // the environment of such a shell; Command.Env is not used
	// Prelude is what it reads before the script. It must unset BASH_ENV and close the descriptors 3
	// and 4. 4 is the file that Process.Report returns.
	Prelude string
}

// Report returns the file that was descriptor 4 of a shell that was started beforehand; nil: the
// process was not. The caller closes it.
func (p *Process) Report() *os.File { return p.report }
