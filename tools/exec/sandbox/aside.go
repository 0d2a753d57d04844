// What a tree has left at protected paths, and was moved aside.

package sandbox

import "slices"

// MovedAside records what the tree has left at a protected path and was moved aside while it runs. It
// becomes one of Exit.Denials, unless TakeAside returns it before.
func (p *Process) MovedAside(d Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.aside) < manyDenials {
		p.aside = append(p.aside, d)
	}
}

// TakeAside returns what MovedAside has recorded, at most 50 of it, and forgets it.
func (p *Process) TakeAside() (aside []Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	aside, p.aside = p.aside, nil
	return aside
}

// Aside returns those of the denials that are about what the tree has left at protected paths.
func (e Exit) Aside() []Denial {
	return slices.DeleteFunc(slices.Clone(e.Denials), func(d Denial) bool { return !d.IsAside() })
}
