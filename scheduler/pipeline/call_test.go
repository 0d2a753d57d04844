package pipeline

import "testing"

// TestLookout: a look at a call ends when its turn comes, and does not begin any more.
func TestLookout(t *testing.T) {
	t.Parallel()
	var l lookout
	ctx, cancel := l.begin(t.Context())
	defer cancel()
	if ctx.Err() != nil {
		t.Error("it ended before the turn")
	}
	l.stop()
	if ctx.Err() == nil {
		t.Error("it goes on in the turn")
	}
	late, cancel := l.begin(t.Context())
	defer cancel()
	if late.Err() == nil {
		t.Error("it began in the turn")
	}
}
