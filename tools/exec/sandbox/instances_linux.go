// The set of instances. An instance is made when its policy is first used, and kept for the next
// process.

package sandbox

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/fs/pathname"
)

// instances are the existing instances, by what they were made for.
type instances struct {
	outlet Outlet
	denied func(id string, d Denial) // records a denial of the trees with that ID
	kept   time.Duration             // how long unused ones are kept; 0: idle

	users *os.File // the user namespace that all others belong to; nil: root's

	mu       sync.Mutex
	all      map[string]*instance
	points   map[mountPoint]int // the existing mount points, and how many instances use each
	networks registry[*network]
	layers   registry[*os.File] // mount namespaces
	timer    *time.Timer        // nil: no instance will be due
	trimming sync.WaitGroup     // what the timer has started
}

const (
	// manyInstances is how many unused instances are kept.
	manyInstances = 32
	// idle is how long they are kept.
	idle = 5 * time.Minute
)

// enter returns the instance of p. It makes one if there is none, or if one of its places has been
// replaced since.
func (c *instances) enter(p Policy, t Tier) (*instance, error) {
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

// leave records that a process of the instance has ended.
func (c *instances) leave(made *instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made.users--
	made.left = time.Now()
	c.trim()
}

// trim closes unused instances: those that were left long ago, and the oldest if there are too
// many. It sets the timer for the next one. mu is held.
func (c *instances) trim() {
	var unused []string
	for key, made := range c.all {
		switch {
		case made.users > 0:
		case made.once, len(made.points) > 0: // its mount points must not stay visible
			c.drop(key)
		default:
			unused = append(unused, key)
		}
	}
	slices.SortFunc(unused, func(a, b string) int { return c.all[a].left.Compare(c.all[b].left) })
	for i, key := range unused {
		if rest := cmp.Or(c.kept, idle) - time.Since(c.all[key].left); rest > 0 && len(unused)-i <= manyInstances {
			c.wake(rest)
			return
		}
		c.drop(key)
	}
}

// drop closes the instance with that key. mu is held.
func (c *instances) drop(key string) {
	made := c.all[key]
	delete(c.all, key)
	c.discard(made)
}

// discard closes an unused instance, and what no other instance uses, and removes the mount points
// that no other has. A mount point that is no longer empty stays. mu is held.
func (c *instances) discard(made *instance) {
	made.close()
	if made.proxy != nil {
		_ = made.proxy.Close()
	}
	c.networks.leave(made.network)
	c.layers.leave(made.layers)
	c.unmake(made)
}

// wake schedules a call of trim, unless one is scheduled already. mu is held.
func (c *instances) wake(after time.Duration) {
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

// make makes the instance of a policy. mu is held.
func (c *instances) make(p Policy, t Tier) (made *instance, err error) {
	made = &instance{once: p.terminal != ""}
	if c.outlet == nil {
		p.Network.Allowed = nil // there is no way out
	}
	if t == Full {
		err = c.makeFull(made, p)
	} else {
		err = c.makeFast(made, p)
	}
	if err != nil {
		c.discard(made)
		return nil, err
	}
	made.filter = filterFor(p, t, made.port())
	return made, nil
}

func (c *instances) makeFull(made *instance, p Policy) (err error) {
	session := cmp.Or(p.Session, fmt.Sprintf("%p", made)) // an instance without one has its own network
	if made.network, err = c.networks.enter(session, func() (*network, error) { return newNetwork(c.users) }); err != nil {
		return err
	}
	made.points = p.mountPoints(c.isMade)
	for _, point := range made.points {
		c.points[point]++
	}
	if made.ruleset, err = supplement(p); err != nil {
		return err
	}
	if made.layers, err = c.layersOf(p); err != nil {
		return err
	}
	made.namespaces, err = newNamespaces(p, made.ruleset, c.users, made.layers)
	return err
}

func (c *instances) makeFast(made *instance, p Policy) (err error) {
	if p.Network.proxied() && landlockABI() >= 4 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		made.proxy = newProxy(c.outlet, l, func(_, user string) (Client, bool) {
			return Client{Network: p.Network, Denied: func(d Denial) { c.denied(user, d) }}, true
		})
	}
	made.ruleset, err = restriction(p, made.port())
	return err
}

// wayOut returns the port of the proxy for a process of the instance; 0: it has none.
func (c *instances) wayOut(made *instance, n Network) (port int, err error) {
	switch {
	case c.outlet == nil || !n.proxied():
		return 0, nil
	case made.network != nil:
		return made.network.wayOut(c.users, c.outlet)
	}
	return made.port(), nil
}

// close closes all instances, which must be unused, and waits for the timer.
func (c *instances) close() {
	c.mu.Lock()
	for key := range c.all {
		c.drop(key)
	}
	if c.users != nil {
		_ = c.users.Close()
	}
	if c.timer != nil && c.timer.Stop() {
		c.trimming.Done()
	}
	c.mu.Unlock()
	c.trimming.Wait()
}

// key identifies what is made for a policy in a tier: the policy's text, and the file that each
// place is now, since a place may be replaced.
func (p *Policy) key(t Tier) string {
	b := fmt.Append(make([]byte, 0, 4096), t, p.Strict, p.UnixSockets, strconv.Quote(p.Session), strconv.Quote(p.terminal))
	if t == Fast { // in Full one proxy serves all policies of a session
		b = fmt.Append(b, p.Network)
	}
	var info unix.Statx_t
	for _, place := range p.Places {
		b = append(b, '0'+byte(place.Access))
		matters := place.Access != Hidden || t == Full || p.reads(place.Path)
		for _, path := range []string{place.Path, place.Source, place.Above} {
			b = append(append(b, path...), 0)
			if path != "" && matters && statx(&b[len(b)-len(path)-1], &info) {
				for _, part := range []uint64{uint64(info.Dev_major), uint64(info.Dev_minor), info.Ino, uint64(info.Btime.Sec), uint64(info.Btime.Nsec)} {
					b = append(strconv.AppendUint(b, part, 36), ' ') // numbers may be reused
				}
			}
			b = append(b, 0)
		}
	}
	return string(b)
}

// reads reports whether Fast lets path be read unless it is hidden. If not, its content does not
// matter.
func (p *Policy) reads(path string) bool {
	in := func(tree string) bool { return strings.HasPrefix(path, tree) && pathname.Within(tree, path) } // most paths fail the first comparison
	return !p.Strict || slices.ContainsFunc(SystemTrees, in) ||
		slices.ContainsFunc(p.Places, func(o Place) bool { return o.Access != Hidden && in(o.elsewhere()) })
}

// statx reports which file is at path, which ends with a NUL; false: none is visible. Unlike
// unix.Statx it copies nothing: it is called for each place before each start.
func statx(path *byte, info *unix.Statx_t) bool {
	here := unix.AT_FDCWD
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(here), uintptr(unsafe.Pointer(path)), unix.AT_SYMLINK_NOFOLLOW,
		unix.STATX_INO|unix.STATX_BTIME, uintptr(unsafe.Pointer(info)), 0)
	return errno == 0
}
