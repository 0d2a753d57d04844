package daemon

import (
	"sync"
	"time"
)

// A pause keeps a session's calls from beginning, for an upgrade and until its client is back. Each is a reason by itself: calls begin
// again when both are over.
type pause struct {
	set     func(paused bool) // the queue's
	mu      sync.Mutex        // held while the queue's pause is set, so that the last one counts
	upgrade bool
	client  *time.Timer // ends the wait for the client; nil: none is awaited
}

// apply sets the queue's pause. mu is held.
func (p *pause) apply() { p.set(p.upgrade || p.client != nil) }

// setUpgrade begins or ends the pause for an upgrade.
func (p *pause) setUpgrade(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upgrade = on
	p.apply()
}

// awaitClient begins the pause for the client that the program before had. It ends after that time at the latest.
func (p *pause) awaitClient(atMost time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client = time.AfterFunc(atMost, p.clientBack)
	p.apply()
}

// clientBack ends the pause for the client.
func (p *pause) clientBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		p.client.Stop()
		p.client = nil
		p.apply()
	}
}

// awaitsClient reports whether the client is still awaited.
func (p *pause) awaitsClient() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.client != nil
}
