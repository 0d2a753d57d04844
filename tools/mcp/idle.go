//go:build !no_mcp

// Servers that nothing uses: they are stopped, and started again by the next call.

package mcp

import "context"

// use counts a call that uses the server or waits for it, until the returned function is called.
func (s *server) use() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	s.quiet.Stop()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses--; s.uses == 0 {
			s.quiet.Reset(s.idle)
		}
	}
}

// park records that the server is stopped, unless a call uses it, and reports whether it is. From
// then on no call gets its connection, which the caller releases.
func (s *server) park() (parked bool) {
	s.update(func() {
		if parked = s.uses == 0; !parked {
			return
		}
		select {
		case <-s.wake: // by a call that found the server running after all
		default:
		}
		s.link, s.status.State = nil, IdleStopped
	})
	return parked
}

// lasts waits until the tools have changed, and reports whether there is still a connection.
func (s *server) lasts(ctx context.Context, l *link) bool {
	for {
		select {
		case <-ctx.Done():
		case <-l.gone:
		case <-l.broken:
		case <-l.relist:
			return true
		case <-s.quiet.C:
			if !s.park() {
				continue
			}
		}
		return false
	}
}

// resting reports whether a server in this state is started only by a call.
func (s State) resting() bool { return s == NotStarted || s == IdleStopped }

// stopped reports whether the server is not running, and only a call starts it.
func (s *server) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.State.resting()
}

// rests reports whether the server is not running, and no call waits for it either.
func (s *server) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.State.resting() && s.uses == 0
}
