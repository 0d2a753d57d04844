package sandbox

// An Alteration is what a process is about to change, as far as that can be told before the kernel
// decides: the system call may still fail. All paths are absolute and on the disk, and no directory
// on the way to them was a link when they were looked up.
type Alteration struct {
	Path string // the entry that is made, written, removed or moved; empty: its name could not be read
	Goes bool   // the entry is removed, moved or replaced
	// To is where the entry is moved to; empty: it is not moved. With Swapped, what stands there is
	// moved to Path.
	To      string
	Swapped bool
}
