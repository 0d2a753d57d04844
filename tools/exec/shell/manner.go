// How a command writes a path: which directory has to be writable for it depends on
// that.

package shell

import "slices"

// A Manner is how a command writes one path.
type Manner int8

// The manners, from the one that needs the least.
const (
	// Nested: it writes what is there and makes nothing, or the path is a name in a
	// directory that is listed too.
	Nested Manner = iota - 1
	// Fills: it opens the file by that name and writes into it, and makes it if it is
	// absent. Of a directory it changes what is in it.
	Fills
	// Places: it puts something there, into a directory that exists, otherwise under
	// that name in the place of what has it.
	Places
	// Replaces: the entry of that name goes, or another takes its place.
	Replaces
)

// MannerOf returns how the command writes a path of Writes.
func (c Command) MannerOf(path string) Manner {
	if i := slices.Index(c.Writes, path); i >= 0 && i < len(c.manners) {
		return c.manners[i]
	}
	return Fills
}

// writes notes that the command writes a path in a manner. Of several manners the one
// that needs the most counts.
func (c *Command) writes(m Manner, path string) {
	if i := slices.Index(c.Writes, path); i >= 0 {
		c.manners[i] = max(c.manners[i], m)
		return
	}
	c.Writes, c.manners = append(c.Writes, path), append(c.manners, m)
}
