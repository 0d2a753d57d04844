// How the daemon keeps its journal, as far as settings say. What comes of it is not known here.

package settings

import "github.com/toold/toold/scheduler/permission"

// A journalSync is what a file says of syncs, with its place.
type journalSync struct {
	unsynced bool
	origin   permission.Origin
}

const keySync = "journal.sync"

func (r *reader) journal(m member) {
	if r.place.level == workspace || r.place.level == session {
		r.idle(m.line, m.key, "it is the whole daemon's, which a "+levelNames[r.place.level]+" does not set")
		return
	}
	for _, m := range r.members(&m.value, "journal.") {
		switch {
		case m.key != "sync":
			r.unknown(m, "journal.", []string{"sync"})
		case m.value.kind != text || m.value.word != "full" && m.value.word != "normal":
			r.wrong(&m.value, keySync, `"full" or "normal"`)
		default:
			r.facts.sync = &journalSync{m.value.word == "normal", r.origin(m.value.line)}
		}
	}
}

// journal takes the highest file's word.
func (m *merger) journal() {
	for _, s := range m.sources {
		if said := s.facts.sync; said != nil {
			m.out.Unsynced = said.unsynced
			word := map[bool]string{false: "full", true: "normal"}[said.unsynced]
			m.out.flags = append(m.out.flags, Line{keySync, word, said.origin})
			return
		}
	}
}
