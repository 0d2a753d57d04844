// Detection of opened files, through the kernel.

package tooltest

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// Unopened fails the test if any process opens one of the files or directories, or a direct entry
// of these, before the test ends.
func Unopened(t testing.TB, paths ...string) {
	t.Helper()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	watched := map[int32]string{}
	for _, path := range paths {
		id, err := unix.InotifyAddWatch(watch, path, unix.IN_OPEN|unix.IN_ACCESS)
		if err != nil {
			t.Fatalf("watching %s: %v", path, err)
		}
		watched[int32(id)] = path
	}
	t.Cleanup(func() {
		defer unix.Close(watch)
		events := make([]byte, 64<<10)
		n, _ := unix.Read(watch, events)
		for events = events[:max(n, 0)]; len(events) >= unix.SizeofInotifyEvent; {
			size := int(binary.NativeEndian.Uint32(events[12:]))
			name, rest := events[unix.SizeofInotifyEvent:][:size], events[unix.SizeofInotifyEvent+size:]
			t.Errorf("%s/%s was opened", watched[int32(binary.NativeEndian.Uint32(events))], bytes.TrimRight(name, "\x00"))
			events = rest
		}
	})
}
