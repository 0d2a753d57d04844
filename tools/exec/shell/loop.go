// Loops: what stands behind something in the text of a body comes before it in the
// next round.

package shell

import "slices"

// loop walks the body of a loop, refuses a change of directory in it, and revokes
// what was found by the value of a variable that something in it may change.
func (a *analyzer) loop(body func()) {
	moved, commands, redirects := a.moved, len(a.out.Commands), len(a.out.Redirects)
	kept := slices.DeleteFunc(slices.Clone(a.variables), func(v *variable) bool { return v.lost })
	a.moved = false
	a.rounds++
	body()
	a.rounds--
	changed := slices.ContainsFunc(kept, func(v *variable) bool { return v.lost && v.used })
	if a.moved {
		a.refuse("cd", "it is inside a loop; put the body into ( )")
		a.cwds = nil
	}
	if a.moved || changed {
		a.takeBack(a.out.Commands[commands:], a.out.Redirects[redirects:])
	}
	a.moved = a.moved || moved
}

// takeBack records that the paths of these are not all, and that their words are unknown.
func (a *findings) takeBack(commands []Command, redirects []Redirect) {
	a.unlisted()
	for i := range commands {
		c := &commands[i]
		c.Unlisted, c.Dirs = true, nil
		for j := range c.Words {
			if c.Words[j].texts = nil; c.Words[j].spread != "" {
				c.Words[j] = Word{Text: c.Words[j].spread, shape: many}
			}
		}
	}
	for i := range redirects {
		redirects[i].Paths, redirects[i].Target.texts = nil, nil
	}
}
