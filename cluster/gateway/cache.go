// A bounded map of what can be found out again.

package gateway

import "sync"

// A cache keeps the last entries that were put or read, at least size and at most
// twice as many. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	size int

	mu         sync.Mutex // guards the rest
	young, old map[K]V
}

func newCache[K comparable, V any](size int) *cache[K, V] {
	return &cache[K, V]{size: size, young: map[K]V{}}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, found := c.young[key]
	if !found {
		if value, found = c.old[key]; found {
			c.putLocked(key, value)
		}
	}
	return value, found
}

func (c *cache[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(key, value)
}

func (c *cache[K, V]) putLocked(key K, value V) {
	if len(c.young) >= c.size {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[key] = value
}

func (c *cache[K, V]) remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.young, key)
	delete(c.old, key)
}
