// The first process of a confined tree's own process namespace. When it is killed, the kernel kills
// all the others. Processes whose parents have died become its children. It is a program of a few
// instructions, so that it costs almost nothing.

package sandbox

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"
)

// firstProgram is an executable file that sleeps forever. SIGCHLD is set to be ignored before it
// starts, so that the kernel collects its children.
var firstProgram = sync.OnceValues(func() (*os.File, error) { return inMemory("first", executable(sleepCode)) })

// executable makes a program from machine code: an ELF header, one segment, the code.
func executable(code []byte) []byte {
	const headers, base = 64 + 56, 0x400000
	le := binary.LittleEndian
	b := bytes.NewBuffer(append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...))
	for _, v := range []any{
		uint16(2), uint16(elfMachine), uint32(1), uint64(base + headers), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(1),
		uint16(64), uint16(0), uint16(0), // the ELF header
		uint32(1), uint32(5), uint64(0), uint64(base), uint64(base), uint64(headers + len(code)), uint64(headers + len(code)), uint64(4096),
		code,
	} {
		_ = binary.Write(b, le, v) // a buffer never fails
	}
	return b.Bytes()
}
