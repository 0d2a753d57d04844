package mirror_test

import (
	"context"
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server is a mirror that answers as it is told; without an answer left it stores what comes.
type server struct {
	tooldv1.UnimplementedJournalMirrorServiceServer
	mu      sync.Mutex
	answers []codes.Code
	groups  []uint64 // of the requests, in order
	stored  []journal.Change
	held    chan struct{} // not nil: closed when a request is there, which then waits for its end
}

func (s *server) AppendChanges(ctx context.Context, r *tooldv1.AppendChangesRequest) (*tooldv1.AppendChangesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, r.GetGroup())
	if s.held != nil {
		close(s.held)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if len(s.answers) > 0 {
		answer := s.answers[0]
		s.answers = s.answers[1:]
		if answer != codes.OK {
			return nil, status.Error(answer, "as told")
		}
	}
	for _, wire := range r.GetChanges() {
		c, err := mirror.Decode(wire)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		s.stored = append(s.stored, c)
	}
	return &tooldv1.AppendChangesResponse{}, nil
}

func serve(t *testing.T, s *server) *mirror.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	c, err := mirror.Connect(socket)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(mirror.MaxMessage))
	tooldv1.RegisterJournalMirrorServiceServer(g, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = g.Serve(listener) })
	t.Cleanup(func() { _ = c.Close(); g.Stop(); serving.Wait() })
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
	s := &server{answers: []codes.Code{codes.Unavailable, codes.OK, codes.Unknown}}
	c := serve(t, s)
	for range 2 {
		if err := c.Append("epoch", changes); err != nil {
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

func TestLargeGroupsAreDivided(t *testing.T) {
	s := &server{}
	c := serve(t, s)
	large := journal.Change{Log: "l", First: 1, Entries: []journal.Entry{{Body: []byte(strings.Repeat("x", 3<<20))}}}
	if err := c.Append("epoch", []journal.Change{large, changes[0], large, large}); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{1, 2, 3}; !slices.Equal(s.groups, want) || len(s.stored) != 4 {
		t.Errorf("requests of the groups %v with %d changes, want %v with 4", s.groups, len(s.stored), want)
	}
}

func TestARefusalIsFinal(t *testing.T) {
	c := serve(t, &server{answers: []codes.Code{codes.Unavailable, codes.FailedPrecondition}})
	if err := c.Append("epoch", changes); status.Code(errors.Unwrap(err)) != codes.FailedPrecondition {
		t.Errorf("the error is %v", err)
	}
}

func TestCloseEndsTheWait(t *testing.T) {
	s := &server{held: make(chan struct{})}
	c := serve(t, s)
	failed := make(chan error)
	go func() { failed <- c.Append("epoch", changes) }()
	<-s.held
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, mirror.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
	unreachable, err := mirror.Connect(filepath.Join(t.TempDir(), "nothing"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { failed <- unreachable.Append("epoch", changes) }()
	_ = unreachable.Close()
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
