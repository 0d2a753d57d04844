// Room on the stack of the goroutine that runs a call.

package pipeline

import "runtime"

// stackOfCall is about what a call of a tool of files needs of its stack, in bytes.
const stackOfCall = 24 << 10

// growStack makes the stack of a new goroutine as large as a call needs it. Otherwise it grows by
// steps, and the deepest of them, which adjusts all frames of the way to a file, costs as much as
// reading the file.
//
//go:noinline
func growStack() {
	var room [stackOfCall]byte
	runtime.KeepAlive(&room)
}
