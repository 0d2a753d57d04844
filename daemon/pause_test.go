package daemon

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPause: calls begin when neither an upgrade nor the wait for a client keeps them, whichever ends first.
func TestPause(t *testing.T) {
	const grace = 5 * time.Second
	for name, tt := range map[string]struct {
		do     func(p *pause)
		paused bool
	}{
		"upgrade":                      {func(p *pause) { p.setUpgrade(true) }, true},
		"upgrade over":                 {func(p *pause) { p.setUpgrade(true); p.setUpgrade(false) }, false},
		"client awaited":               {func(p *pause) { p.awaitClient(grace); time.Sleep(grace - 1) }, true},
		"client back":                  {func(p *pause) { p.awaitClient(grace); p.clientBack() }, false},
		"client late":                  {func(p *pause) { p.awaitClient(grace); time.Sleep(grace + 1) }, false},
		"client back while upgraded":   {func(p *pause) { p.awaitClient(grace); p.setUpgrade(true); p.clientBack() }, true},
		"client late while upgraded":   {func(p *pause) { p.awaitClient(grace); p.setUpgrade(true); time.Sleep(grace + 1) }, true},
		"upgrade given up, client not": {func(p *pause) { p.awaitClient(grace); p.setUpgrade(true); p.setUpgrade(false) }, true},
		"no client awaited":            {func(p *pause) { p.setUpgrade(true); p.clientBack() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				paused := false
				p := pause{set: func(on bool) { paused = on }}
				tt.do(&p)
				synctest.Wait()
				if paused != tt.paused {
					t.Errorf("paused: %v, want %v", paused, tt.paused)
				}
				p.clientBack() // no timer stays
			})
		})
	}
}
