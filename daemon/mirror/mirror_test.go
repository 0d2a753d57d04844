package mirror_test

import (
	"bytes"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server is a mirror that answers as it is told; without an answer left it stores what comes.
type server struct {
	mu      sync.Mutex
	answers []answer
	groups  []uint64 // of the requests, in order
	stored  []journal.Change
	known   chan struct{} // not nil: it holds back what the daemon sends, and waits until the daemon knows
	held    chan struct{} // not nil: closed when a request is there, which then waits for the end of its connection
	ended   chan struct{} // closed with the test
}

// An answer is what a server does with a request.
type answer int

const (
	stores answer = iota
	hangsUp
	refuses
)

var errRefused = errors.New("as told")

func (s *server) store(r *tooldv1.AppendChangesRequest, hangUp func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, r.GetGroup())
	if s.held != nil {
		close(s.held)
		<-s.ended
	}
	if len(s.answers) > 0 {
		answer := s.answers[0]
		s.answers = s.answers[1:]
		switch answer {
		case hangsUp:
			hangUp()
			return nil
		case refuses:
			return errRefused
		}
	}
	for _, wire := range r.GetChanges() {
		c, err := mirror.Decode(wire)
		if err != nil {
			return err
		}
		s.stored = append(s.stored, c)
	}
	return nil
}

func serve(t *testing.T, s *server) *mirror.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	c := mirror.Connect(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s.ended = make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = mirror.ServeConn(conn, func(r *tooldv1.AppendChangesRequest, _ []byte, held func()) error {
				if s.known != nil && r.GetHolds() {
					held()
					<-s.known
				}
				return s.store(r, func() { _ = conn.Close() })
			})
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { c.Close(); close(s.ended); _ = listener.Close(); serving.Wait() })
	return c
}

var changes = []journal.Change{
	{Log: "a", Created: time.Unix(1, 2), First: 7, Entries: []journal.Entry{
		{Kind: 3, Call: "c", Turn: 4, Time: time.Unix(5, 6), Body: []byte("body"), Note: []byte{}, State: []journal.Put{{Key: "k", Value: []byte{}}, {Key: "gone"}}},
		{Time: time.Unix(7, 8), Body: []byte("b")},
	}},
	{Log: "b", Created: time.Unix(1, 3), First: 1, State: []journal.Put{{Key: "k", Value: []byte("v")}}, Sealed: time.Unix(9, 0)},
	{Log: "c", Removed: true},
}

func TestChangesComeAsTheyWere(t *testing.T) {
	s := &server{answers: []answer{hangsUp, stores, hangsUp}}
	c := serve(t, s)
	for range 2 {
		if err := c.Append("epoch", changes, never(t)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(slices.Concat(changes, changes), s.stored); diff != "" {
		t.Error("what is stored differs:\n" + diff)
	}
	if want := []uint64{1, 1, 2, 2}; !slices.Equal(s.groups, want) {
		t.Errorf("requests of the groups %v, want %v", s.groups, want)
	}
}

// never is for mirrors that do not hold back what the daemon sends.
func never(t *testing.T) func() {
	return func() { t.Error("the mirror is said to hold back what the daemon sends") }
}

// TestHeld: of a group it is known that the mirror holds back what is sent once the mirror has the whole group, and before it is
// stored.
func TestHeld(t *testing.T) {
	s := &server{known: make(chan struct{}), answers: []answer{hangsUp}}
	c := serve(t, s)
	large := journal.Change{Log: "l", First: 1, Entries: []journal.Entry{{Body: []byte(strings.Repeat("x", 3<<20))}}}
	for _, group := range []struct {
		changes []journal.Change
		before  int // how many of them are in requests before the last one
	}{{changes, 0}, {[]journal.Change{large, large}, 1}} {
		had, stored := len(s.stored), -1
		if err := c.Append("epoch", group.changes, func() {
			s.mu.Lock()
			stored = len(s.stored)
			s.mu.Unlock()
			s.known <- struct{}{}
		}); err != nil {
			t.Fatal(err)
		}
		if stored != had+group.before {
			t.Errorf("%d changes were stored when the mirror held back what is sent, want %d", stored, had+group.before)
		}
	}
}

func TestLargeGroupsAreDivided(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	large := journal.Change{Log: "l", First: 1, Entries: []journal.Entry{{Body: []byte(strings.Repeat("x", 3<<20))}}}
	if err := c.Append("epoch", []journal.Change{large, changes[0], large, large}, never(t)); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{1, 2, 3}; !slices.Equal(s.groups, want) || len(s.stored) != 4 {
		t.Errorf("requests of the groups %v with %d changes, want %v with 4", s.groups, len(s.stored), want)
	}
}

func TestARefusalIsFinal(t *testing.T) {
	c := serve(t, &server{answers: []answer{hangsUp, refuses}})
	if err := c.Append("epoch", changes, never(t)); err == nil || !strings.Contains(err.Error(), errRefused.Error()) {
		t.Errorf("the error is %v", err)
	}
}

func TestCloseEndsTheWait(t *testing.T) {
	s := &server{held: make(chan struct{})}
	c := serve(t, s)
	failed := make(chan error)
	go func() { failed <- c.Append("epoch", changes, never(t)) }()
	<-s.held
	c.Close()
	if err := <-failed; !errors.Is(err, mirror.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
	unreachable := mirror.Connect(filepath.Join(t.TempDir(), "nothing"))
	go func() { failed <- unreachable.Append("epoch", changes, never(t)) }()
	unreachable.Close()
	if err := <-failed; !errors.Is(err, mirror.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}

// FuzzDecode: what is decoded from any bytes is the same when it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	for _, c := range changes {
		text, err := proto.Marshal(mirror.Encode(c))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var wire tooldv1.JournalChange
		if proto.Unmarshal(text, &wire) != nil {
			return
		}
		c, err := mirror.Decode(&wire)
		if err != nil {
			return
		}
		again, err := mirror.Decode(mirror.Encode(c))
		if diff := cmp.Diff(c, again); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// FuzzServeConn: whatever comes over a connection, only whole requests are stored, each has an answer, and no memory is taken for a
// length that is only named.
func FuzzServeConn(f *testing.F) {
	whole, err := proto.Marshal(&tooldv1.AppendChangesRequest{Epoch: "e", Group: 1, Changes: []*tooldv1.JournalChange{mirror.Encode(changes[0])}})
	if err != nil {
		f.Fatal(err)
	}
	frame := append([]byte{0, 0, 0, byte(len(whole))}, whole...)
	f.Add(frame, false)
	f.Add(append(frame, frame...), true)
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1}, false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, false)
	f.Add([]byte{0, 0, 0, 1, 0xff}, false)
	f.Fuzz(func(t *testing.T, data []byte, refuse bool) {
		conn := &pipe{Reader: bytes.NewReader(data)}
		requests := 0
		err := mirror.ServeConn(conn, func(_ *tooldv1.AppendChangesRequest, encoded []byte, held func()) error {
			requests++
			held()
			if refuse || !bytes.Contains(data, encoded) {
				return errRefused
			}
			return nil
		})
		if err == nil {
			t.Error("a connection has ended without a reason")
		}
		if answers := conn.written; len(answers) < requests || refuse && requests > 0 && !bytes.Contains(answers, []byte(errRefused.Error())) {
			t.Errorf("%d requests have the answers %q", requests, answers)
		}
	})
}

// A pipe is a connection of which all is known that comes.
type pipe struct {
	net.Conn
	*bytes.Reader
	written []byte
}

func (p *pipe) Read(data []byte) (int, error) { return p.Reader.Read(data) }

func (p *pipe) Write(data []byte) (int, error) {
	p.written = append(p.written, data...)
	return len(data), nil
}
