// The caches of programs, as places of a policy.

package pipeline

import "github.com/toold/toold/tools/exec/sandbox"

// A Cache is where programs keep what they can make again. Calls for the same roots share what they write there.
type Cache struct {
	sandbox.Place
	Variable string // by which programs find it if it is elsewhere; empty: there is none
}

// caches lays what processes have kept over the user's own caches that are not hidden.
func (l layout) caches(conf Confining) {
	if l.Tier != sandbox.Full {
		return
	}
	for _, c := range conf.Caches {
		if l.at(c.Path) != sandbox.Hidden {
			l.add(c.Place)
		}
	}
}

// moved are the variables by which programs find their caches where those cannot stand at the user's own.
func (conf Confining) moved(p sandbox.Policy) (environ []string) {
	if confinement, err := conf.Runner.Confinement(p); err != nil || p.Strict || confinement.Tier != sandbox.Fast {
		return nil
	}
	for _, c := range conf.Caches {
		if c.Variable != "" {
			environ = append(environ, c.Variable+"="+c.Upper())
		}
	}
	return environ
}
