package rawio_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/cmd/toold/internal/rawio"
)

// TestStream: what is written arrives whole and in its order, also more than a pipe or a socket takes at once, and a reader
// that waits receives the end.
func TestStream(t *testing.T) {
	blocking, nonBlocking := pipe(t, false), pipe(t, true)
	for name, ends := range map[string]struct {
		in  io.Reader
		out io.Writer
		end func() error
	}{
		"a pipe that blocks":   {rawio.New(nonBlockingEnd(t, blocking.in)), rawio.New(blocking.out), blocking.out.Close},
		"a pipe that does not": {rawio.New(nonBlocking.in), rawio.New(nonBlocking.out), nonBlocking.out.Close},
	} {
		t.Run(name, func(t *testing.T) { carries(t, ends.in, ends.out, ends.end) })
	}
	t.Run("a connection", func(t *testing.T) {
		client, server := connected(t)
		carries(t, rawio.NewConn(server), rawio.NewConn(client), client.CloseWrite)
	})
}

// carries checks that messages of several sizes written to out are what is read from in.
func carries(t *testing.T, in io.Reader, out io.Writer, end func() error) {
	t.Helper()
	var want []byte
	for i, size := range []int{1, 100, 1 << 20, 0, 5000} {
		want = append(want, bytes.Repeat([]byte{byte('a' + i)}, size)...)
	}
	failed := make(chan error, 1)
	go func() {
		for rest := want; len(rest) > 0; {
			size := min(len(rest), 300_001)
			if n, err := out.Write(rest[:size]); err != nil || n != size {
				failed <- errors.Join(err, end())
				return
			}
			rest = rest[size:]
		}
		failed <- end()
	}()
	got, err := io.ReadAll(in)
	if err := errors.Join(err, <-failed); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes were read, want the %d that were written", len(got), len(want))
	}
}

// TestErrors: an error of a write is the one that the file reports, and a read ends when either side closes the connection.
func TestErrors(t *testing.T) {
	ends := pipe(t, true)
	if err := ends.in.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := rawio.New(ends.out).Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a write to a pipe that is not read: %v, want %v", err, syscall.EPIPE)
	}

	client, server := connected(t)
	conn, ended := rawio.NewConn(client), make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of a connection that is closed: %v, want %v", err, net.ErrClosed)
	}
	if n, err := rawio.NewConn(server).Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a read when the peer has closed: %d, %v, want %v", n, err, io.EOF)
	}
}

// TestFile: a regular file is written at its offset, as it may be the standard output.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stream := rawio.New(file)
	for _, text := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(stream, text); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("the file has %q (%v), want both lines", got, err)
	}
}

type ends struct{ in, out *os.File }

// pipe returns a pipe of which both ends block or neither does.
func pipe(t *testing.T, polled bool) ends {
	t.Helper()
	flags := unix.O_CLOEXEC
	if polled {
		flags |= unix.O_NONBLOCK
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], flags); err != nil {
		t.Fatal(err)
	}
	e := ends{os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")}
	t.Cleanup(func() { _, _ = e.in.Close(), e.out.Close() })
	return e
}

// nonBlockingEnd returns the same end of a pipe, in non-blocking mode.
func nonBlockingEnd(t *testing.T, end *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(end.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "in")
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func connected(t *testing.T) (client, server *net.UnixConn) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err = net.DialUnix("unix", nil, listener.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	server, err = listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}
