// The files of the tool Memory. Reading them is free, and changing them is as an edit inside the roots. A rule has a pattern of their
// paths, in the syntax of gitignore, below /memories.

package permission

import (
	"cmp"
	"strings"

	"github.com/toold/toold/tools/fs/memstore"
)

func (r *Rule) specifyMemory() (why, meant string) {
	if why, meant = r.specifyPath(); why != "" {
		return why, meant
	}
	if strings.HasPrefix(r.specifier, "//") || strings.HasPrefix(r.specifier, "~") {
		return "the paths of Memory are below /memories", "Memory(/memories/**)"
	}
	r.subject = memories
	return "", ""
}

// memoryPlaces returns where the path of a rule for Memory points, which may have /memories in front.
func memoryPlaces(spec string) []place {
	if below, ok := strings.CutPrefix(spec, memstore.Root); ok && (below == "" || below[0] == '/') {
		spec = cmp.Or(below, "/**")
	}
	return at([]string{memstore.Root}, spec)
}

// firesOnMemory: a path may be that of a directory. A rule meets what the call names, and what lies below that.
func (r *anchored) firesOnMemory(c *call) (g Reason) {
	for _, touch := range c.Memory {
		if anyHolds(r.places, touch.Path, true) {
			return r.reason(touch.Path, "")
		}
	}
	return g
}

// memory looks at the files of the tool Memory that the call changes.
func (l *coverage) memory() {
	for _, touch := range l.Memory {
		holds := func(r *anchored) bool { return r.subject&memories != 0 && anyHolds(r.places, touch.Path, true) }
		switch r := l.policy.Rules.first(AllowList, holds); {
		case l.whole, !touch.Write:
		case r != nil:
			l.allow(r.reason(touch.Path, ""))
		case l.policy.Mode == AcceptEdits:
			l.allow(Reason{Code: ByAcceptEdits})
		default:
			l.miss(Reason{Code: NoRuleMemory, About: touch.Path, Part: touch.Path, needs: []string{"Memory(/memories/**)"}})
		}
	}
}

// remembers reports whether the call changes what the tool Memory keeps.
func (f *Facts) remembers() bool {
	for _, touch := range f.Memory {
		if touch.Write {
			return true
		}
	}
	return false
}
