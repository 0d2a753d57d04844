package sandbox

// Which cells there are. A cell is made when its policy is first asked for and kept for the next process.

import (
	"io"
	"net"
	"sync"
	"time"
)

// cells are those that have been made, by what they were made for.
type cells struct {
	outlet func(Network, net.Listener) io.Closer

	mu  sync.Mutex
	all map[string]*cell
}

const (
	// manyCells is how many cells are kept that nobody uses.
	manyCells = 32
	// idle is how long they are kept.
	idle = 5 * time.Minute
)

// enter gives the cell of p, which is made if there is none yet or if one of its places has been replaced since.
func (c *cells) enter(p Policy, t Tier) (*cell, error) {
	key := p.key(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	made, ok := c.all[key]
	if !ok {
		var err error
		if made, err = c.make(p, t); err != nil {
			return nil, err
		}
		c.trim()
		c.all[key] = made
	}
	made.users++
	return made, nil
}

// leave says that a process is no more.
func (c *cells) leave(made *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made.users--
	made.left = time.Now()
}

// trim lets go of cells that nobody uses: those that were left long ago, and the oldest when there are many. mu is held.
func (c *cells) trim() {
	for {
		var oldest string
		for key, made := range c.all {
			if made.users == 0 && (oldest == "" || made.left.Before(c.all[oldest].left)) {
				oldest = key
			}
		}
		if oldest == "" || len(c.all) < manyCells && time.Since(c.all[oldest].left) < idle {
			return
		}
		c.all[oldest].close()
		delete(c.all, oldest)
	}
}

func (c *cells) make(p Policy, t Tier) (made *cell, err error) {
	made = &cell{policy: p}
	defer func() {
		if err != nil {
			made.close()
		}
	}()
	var proxy net.Listener
	if t == Full {
		if made.ruleset, err = supplement(p); err == nil {
			made.namespaces, proxy, err = newNamespaces(p, made.ruleset)
		}
	} else if p.Network.proxied() && landlockABI() >= 4 {
		proxy, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return made, err
	}
	if proxy != nil {
		made.port = proxy.Addr().(*net.TCPAddr).Port
		made.outlet = c.outlet(p.Network, proxy)
	}
	if t != Full {
		made.ruleset, err = restriction(p, made.port)
	}
	return made, err
}

func (c *cells) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, made := range c.all {
		made.close()
		delete(c.all, key)
	}
}
