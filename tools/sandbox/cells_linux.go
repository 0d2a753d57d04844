package sandbox

// Which cells there are. A cell is made when its policy is first asked for and kept for the next process.

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cells are those that have been made, by what they were made for.
type cells struct {
	outlet Outlet
	kept   time.Duration // how long those that nobody uses are; 0: idle

	mu       sync.Mutex
	all      map[string]*cell
	timer    *time.Timer    // nil: no cell will be due
	trimming sync.WaitGroup // what the timer sets going
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
	c.trim()
}

// trim lets go of cells that nobody uses: those that were left long ago, and the oldest when there are many. It sets the
// timer for the next one. mu is held.
func (c *cells) trim() {
	var unused []string
	for key, made := range c.all {
		if made.users == 0 {
			unused = append(unused, key)
		}
	}
	slices.SortFunc(unused, func(a, b string) int { return c.all[a].left.Compare(c.all[b].left) })
	for i, key := range unused {
		if rest := cmp.Or(c.kept, idle) - time.Since(c.all[key].left); rest > 0 && len(unused)-i <= manyCells {
			c.wake(rest)
			return
		}
		c.all[key].close()
		delete(c.all, key)
	}
}

// wake has trim called after that time, unless it will be called anyhow. mu is held.
func (c *cells) wake(after time.Duration) {
	if c.timer != nil {
		return
	}
	c.trimming.Add(1)
	c.timer = time.AfterFunc(after, func() {
		defer c.trimming.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer = nil
		c.trim()
	})
}

func (c *cells) make(p Policy, t Tier) (made *cell, err error) {
	made = &cell{}
	if c.outlet == nil {
		p.Network.Allowed = nil // there is no way out
	}
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

// close lets go of all cells, when nobody uses them any more, and waits for the timer.
func (c *cells) close() {
	c.mu.Lock()
	for key, made := range c.all {
		made.close()
		delete(c.all, key)
	}
	if c.timer != nil && c.timer.Stop() {
		c.trimming.Done()
	}
	c.mu.Unlock()
	c.trimming.Wait()
}

// key names what is made for a policy in a tier: its text, and which file each place is now, since a place may be replaced.
func (p *Policy) key(t Tier) string {
	b := fmt.Append(make([]byte, 0, 4096), t, p.Strict, p.UnixSockets, p.Network)
	var info unix.Statx_t
	for _, place := range p.Places {
		b = append(b, '0'+byte(place.Access))
		matters := place.Access != Hidden || t == Full || p.reads(place.Path)
		for _, path := range []string{place.Path, place.Source} {
			b = append(append(b, path...), 0)
			if path != "" && matters && statx(&b[len(b)-len(path)-1], &info) {
				for _, part := range []uint64{uint64(info.Dev_major), uint64(info.Dev_minor), info.Ino, uint64(info.Btime.Sec), uint64(info.Btime.Nsec)} {
					b = append(strconv.AppendUint(b, part, 36), ' ') // numbers alone are used again
				}
			}
			b = append(b, 0)
		}
	}
	return string(b)
}

// reads says whether Fast lets path be read unless it is hidden: if not, it makes no difference what stands there.
func (p *Policy) reads(path string) bool {
	in := func(tree string) bool { return strings.HasPrefix(path, tree) && within(path, tree) } // few get past the first
	return !p.Strict || slices.ContainsFunc(SystemTrees, in) ||
		slices.ContainsFunc(p.Places, func(o Place) bool { return o.Access != Hidden && in(cmp.Or(o.Source, o.Path)) })
}

// statx says which file stands at path, which ends with a NUL; false: none that can be seen. Unlike unix.Statx it copies
// nothing: there are as many looks as there are places, before each start.
func statx(path *byte, info *unix.Statx_t) bool {
	here := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(here), uintptr(unsafe.Pointer(path)), unix.AT_SYMLINK_NOFOLLOW,
		unix.STATX_INO|unix.STATX_BTIME, uintptr(unsafe.Pointer(info)), 0)
	return errno == 0
}
