// FuzzDependency plays any bytes on a Plan in the Dependency ordering, with a store that the calls read and change. Each
// call reads what it touches when it starts, and writes when it ends. Run one by one, in the order of their arrival, the
// same calls must have read and written the same.

package scheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A visit is a call of the model.
type visit struct {
	Task   // nil: a Plan runs and skips nothing itself
	id     string
	turn   uint64
	path   string // "": everything, if it changes something, or nothing
	writes bool
	aborts bool
	links  string // where the name l leads once the call has ended; "": as before
	s      *store

	order   int // of arrival
	started bool
	outside bool
	asked   bool // for its slot
	apart   bool
	stopped bool
	ended   bool   // or skipped
	ran     bool   // to its end
	at      string // where its path led when it began
	saw     string
}

func (v *visit) ID() string       { return v.id }
func (v *visit) Turn() uint64     { return v.turn }
func (v *visit) Concurrent() bool { return !v.writes }
func (v *visit) Aborts() bool     { return v.aborts }
func (v *visit) Look() Footprint  { return v.Touches() }

func (v *visit) Touches() Footprint {
	switch path := v.s.resolve(v.path); {
	case v.writes && path == "":
		return Footprint{Everything: true}
	case v.writes:
		return Footprint{Writes: []Place{{Path: path}}}
	case path != "":
		return Footprint{Reads: []Place{{Path: path}}}
	}
	return Footprint{}
}

// A store is what the calls work on: who wrote each file last, and where the link leads.
type store struct {
	link  string
	wrote map[string]string
}

func (s *store) resolve(path string) string {
	if path == "l" {
		path = s.link
	}
	if path == "" {
		return ""
	}
	return "/" + path + "/"
}

// read returns what is at and below a path.
func (s *store) read(path string) string {
	var saw []string
	for _, file := range slices.Sorted(maps.Keys(s.wrote)) {
		if path != "" && (strings.HasPrefix(file, path) || strings.HasPrefix(path, file)) {
			saw = append(saw, file+s.wrote[file])
		}
	}
	return strings.Join(saw, " ")
}

// write does what a call does.
func (s *store) write(v *visit, at string) {
	switch {
	case !v.writes:
	case at != "":
		s.wrote[at] = v.id
	default:
		for file := range s.wrote {
			s.wrote[file] = v.id
		}
		if v.links != "" {
			s.link = v.links
		}
	}
}

// A model plays.
type model struct {
	*testing.T
	plan        *Plan
	concurrency int
	store       *store
	visits      []*visit
	looking     []*visit
	turn        uint64
	aborted     map[uint64]int // arrival of the call that aborted the turn
	script      []string
}

func FuzzDependency(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		play := make([]byte, 300)
		for i := range play {
			play[i] = byte(random.Uint32())
		}
		f.Add(play)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		m := &model{
			T: t, plan: NewPlan(Streaming, DefaultConcurrency), concurrency: DefaultConcurrency, turn: 1, aborted: map[uint64]int{},
			store: &store{link: "a", wrote: map[string]string{}},
		}
		m.plan.SetOrdering(Dependency)
		for pair := range slices.Chunk(input[:min(len(input), 300)/2*2], 2) {
			m.play(pair[0]%16, int(pair[1]))
			m.settle()
		}
		m.finish()
	})
}

func (m *model) play(what byte, arg int) {
	switch what {
	case 0, 1, 2, 3, 4:
		m.add(arg)
	case 5, 6, 7:
		m.end(arg, false)
	case 8:
		m.end(arg, true)
	case 9, 10:
		m.looked(arg)
	case 11:
		if v := m.pick(arg, func(v *visit) bool { return v.running() && !v.outside }); v != nil {
			v.outside = true
			m.plan.Leave(v.id)
		}
	case 12:
		if v := m.pick(arg, func(v *visit) bool { return v.running() && v.outside && !v.asked && !v.stopped }); v != nil {
			v.asked = true
			m.plan.Return(v.id)
		}
	case 13:
		if v := m.pick(arg, func(v *visit) bool { return !v.ended }); v != nil {
			m.note("stop %s", v.id)
			m.plan.Stop(v.id, cause("stopped"))
		}
	case 14:
		m.other(arg)
	case 15:
		// Only a call that has done nothing yet may turn out to touch more, and then it does nothing here.
		v := m.pick(arg, func(v *visit) bool { return v.running() && !v.outside && !v.stopped && !v.writes && !v.apart })
		if v != nil {
			m.note("alone %s", v.id)
			v.outside, v.asked, v.apart = true, true, true
			m.plan.Separate(v.id)
		}
	}
}

func (m *model) other(arg int) {
	switch arg % 4 {
	case 0:
		m.note("endturn %d", m.turn)
		m.plan.EndTurn(m.turn)
		m.turn++
	case 1:
		m.plan.SetFeed(Feed(arg / 4 % 2))
	case 2:
		m.concurrency = 1 + arg/4%6
		m.plan.SetConcurrency(m.concurrency)
	case 3:
		m.note("stop turn %d", m.turn)
		m.plan.StopTurn(m.turn, cause("turn stopped"), nil)
		m.plan.EndTurn(m.turn)
		m.turn++
	}
}

func (m *model) add(arg int) {
	paths := []string{"a", "b", "c", "d", "d/x", "d/y", "l", ""}
	v := &visit{
		id: fmt.Sprint("v", len(m.visits)), turn: m.turn, path: paths[arg%8], writes: arg&8 != 0, aborts: arg&0x30 == 0x30,
		order: len(m.visits), s: m.store,
	}
	if v.writes && v.path == "" && arg&0x40 != 0 {
		v.links = paths[arg>>4%6]
	}
	m.visits = append(m.visits, v)
	m.note("add %d %s %q writes %t aborts %t", v.turn, v.id, v.path, v.writes, v.aborts)
	m.plan.Add(v, "")
}

func (v *visit) running() bool { return v.started && !v.ended }

func (m *model) pick(arg int, selected func(*visit) bool) *visit {
	var those []*visit
	for _, v := range m.visits {
		if selected(v) {
			those = append(those, v)
		}
	}
	if len(those) == 0 {
		return nil
	}
	return those[arg%len(those)]
}

// end lets a call end that runs; fails: it aborts its siblings, if its kind does.
func (m *model) end(arg int, fails bool) {
	v := m.pick(arg, func(v *visit) bool { return v.running() && (!v.outside || v.stopped) && !(v.asked && !v.stopped) })
	if v == nil {
		return
	}
	v.ended = true
	if !v.stopped {
		v.ran = true
		if !v.apart {
			m.store.write(v, v.at)
		}
	}
	var abort error
	if fails && v.aborts && !v.stopped {
		abort = cause(v.id + " failed")
		if _, known := m.aborted[v.turn]; !known {
			m.aborted[v.turn] = v.order
		}
		for _, w := range m.visits[v.order+1:] {
			if w.turn == v.turn && w.writes && (w.ran || w.running()) {
				m.fail("%s has changed something and is aborted by %s, which came first", w.id, v.id)
			}
		}
	}
	m.note("end %s, %v", v.id, abort)
	m.plan.Finish(v.id, abort)
}

func (m *model) looked(arg int) {
	if len(m.looking) == 0 {
		return
	}
	v := m.looking[arg%len(m.looking)]
	m.looking = slices.DeleteFunc(m.looking, func(w *visit) bool { return w == v })
	m.note("looked %s", v.id)
	m.plan.Looked(v.id, v.Touches())
}

// settle starts what may start, and judges the steps.
func (m *model) settle() {
	m.steps()
	for m.plan.Start(MaxConcurrency) {
		m.steps()
	}
	if len(m.looking) > 0 || m.concurrency == 1 {
		return
	}
	for _, v := range m.visits {
		if !v.started && !v.ended && m.free(v) && m.plan.Slots() < m.concurrency {
			m.fail("%s conflicts with none in front of it and has not started", v.id)
		}
	}
}

// free reports whether nothing in front of a call keeps it: no turn that is held, and none that it conflicts with.
func (m *model) free(v *visit) bool {
	for _, w := range m.visits[:v.order+1] {
		if turn := m.plan.turns.get(w.turn, m.plan.how); !w.ended && turn != nil && turn.held() {
			return false
		}
	}
	for _, w := range m.visits {
		switch {
		case w == v || w.ended || w.order > v.order && (!w.started || w.apart):
		case m.conflict(w, v), w.order < v.order && w.aborts && w.turn == v.turn && v.writes:
			return false
		}
	}
	return true
}

func (m *model) conflict(v, w *visit) bool {
	if v.apart || w.apart {
		return true
	}
	f, g := v.where(), w.where()
	everything := v.writes && f == "" || w.writes && g == ""
	return everything || (v.writes || w.writes) && f != "" && g != "" && (strings.HasPrefix(f, g) || strings.HasPrefix(g, f))
}

func (v *visit) where() string {
	if v.started {
		return v.at
	}
	return v.s.resolve(v.path)
}

func (m *model) steps() {
	for step := range m.plan.Steps {
		if step.Kind == StepTurnEnded {
			continue
		}
		v := step.Task.(*visit)
		switch step.Kind {
		case StepStart:
			m.starts(v)
		case StepResume:
			v.outside, v.asked = false, false
		case StepStop:
			if by, aborted := m.aborted[v.turn]; aborted && step.Cause.Error() == m.visits[by].id+" failed" && v.order < by {
				m.fail("%s is aborted by %s, which came later", v.id, m.visits[by].id)
			}
			v.stopped, v.asked = true, false
		case StepSkip:
			if v.started || v.ended {
				m.fail("%s is skipped and had started or ended", v.id)
			}
			v.ended = true
			m.looking = slices.DeleteFunc(m.looking, func(w *visit) bool { return w == v })
		case StepLook:
			if v.started || slices.Contains(m.looking, v) {
				m.fail("%s is looked at twice at once, or when it runs", v.id)
			}
			m.looking = append(m.looking, v)
		}
	}
}

// starts judges a start, and lets the call read.
func (m *model) starts(v *visit) {
	m.note("  start %s", v.id)
	if v.started || v.ended {
		m.fail("%s starts and had started or ended", v.id)
	}
	v.at = v.s.resolve(v.path)
	for _, w := range m.visits {
		if w != v && !w.ended && (w.started || w.order < v.order) && !(w.apart && w.order > v.order) && m.conflict(v, w) {
			m.fail("%s starts, and %s, with which it conflicts, has not ended", v.id, w.id)
		}
	}
	if by, aborted := m.aborted[v.turn]; aborted && v.order > by {
		m.fail("%s starts after its turn was aborted", v.id)
	}
	v.started = true
	v.saw = m.store.read(v.at)
	if m.plan.Slots() > m.concurrency && m.concurrency > 1 {
		m.note("  %d slots of %d", m.plan.Slots(), m.concurrency)
	}
}

// finish ends everything, and runs the calls that ran to their end one by one.
func (m *model) finish() {
	m.plan.EndTurn(m.turn)
	for range 10 * (len(m.visits) + 1) {
		m.settle()
		for len(m.looking) > 0 {
			m.looked(0)
			m.settle()
		}
		for _, v := range m.visits {
			if v.running() && v.outside && !v.asked && !v.stopped {
				v.asked = true
				m.plan.Return(v.id)
			}
		}
		m.settle()
		m.end(0, false)
	}
	m.steps()
	if !m.plan.Idle() {
		m.fail("something is left and cannot end")
	}
	serial := &store{link: "a", wrote: map[string]string{}}
	for _, v := range m.visits {
		if !v.ran || v.apart {
			continue
		}
		at := serial.resolve(v.path)
		if saw := serial.read(at); at != v.at || saw != v.saw {
			m.fail("%s touched %q and saw %q; one by one it would have been %q and %q", v.id, v.at, v.saw, at, saw)
		}
		serial.write(v, at)
	}
	if !maps.Equal(serial.wrote, m.store.wrote) || serial.link != m.store.link {
		m.fail("left %v, one by one it would be %v", m.store, serial)
	}
}

func (m *model) note(format string, args ...any) {
	m.script = append(m.script, fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.Helper()
	for _, line := range m.script {
		m.Log(line)
	}
	m.Fatalf(format, args...)
}
