package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/scheduler/permission"
)

// ignored is a key that has no effect, which needs no warning.
type ignored struct{ flag bool } // flag: its value is true or false

func (i ignored) read(r *reader, k *key, m member) any {
	if i.flag {
		r.flag(&m.value, k.name)
	}
	return nil
}

func (ignored) merge(*merger, *key) {}

// A value is what one file sets a scalar to.
type value[T any] struct {
	is     T
	origin permission.Origin
}

// A scalar is one value. The highest file's counts.
type scalar[T any] struct {
	parse func(r *reader, k *key, m member) (T, bool) // reports what is wrong
	text  func(T) string
	set   func(value[T]) // nil: other keys ask for it
	get   func() T       // what is in force; only needed beside looser
	// looser orders values; nil: a workspace's count like others. Else one counts only where it is stricter than what would be
	// in force without it, and of a workspace's own files the highest decides.
	looser func(a, b T) bool
}

func (s scalar[T]) read(r *reader, k *key, m member) any {
	if is, ok := s.parse(r, k, m); ok {
		return &value[T]{is, r.origin(m.value.line)}
	}
	return nil
}

func (s scalar[T]) merge(m *merger, k *key) {
	var counts *value[T]
	for i := range m.sources {
		from := &m.sources[i]
		v, ok := from.values[k.name].(*value[T])
		if ok && counts == nil && (s.looser == nil || from.place.level != workspace) && m.counts(from, k) {
			counts = v
			s.apply(v)
		}
	}
	if s.looser != nil {
		counts = cmp.Or(s.strictest(m, k), counts)
	}
	if counts != nil {
		m.line(k.name, s.text(counts.is), counts.origin)
	}
}

func (s scalar[T]) apply(v *value[T]) {
	if s.set != nil {
		s.set(*v)
	}
}

// strictest applies the strictest value of workspaces that is stricter than what is in force; nil: there is none.
func (s scalar[T]) strictest(m *merger, k *key) (counts *value[T]) {
	base := s.get()
	for root := range m.scope.Roots {
		at := slices.IndexFunc(m.sources, func(o source) bool {
			return o.place.level == workspace && o.root == root && o.values[k.name] != nil
		})
		if at < 0 {
			continue
		}
		from := &m.sources[at]
		switch v := from.values[k.name].(*value[T]); {
		case s.looser(v.is, base):
			m.warn(v.origin, "%s %s has no effect: a workspace can only make it stricter, and %s is in force.", k.name, s.text(v.is), s.text(base))
		case s.looser(s.get(), v.is) && m.counts(from, k):
			counts = v
			s.apply(v)
		}
	}
	return counts
}

// simple returns a function that parses a value by itself, and reports what is expected in the place of another one.
func simple[T any](expected string, parse func(n *node) (T, bool)) func(r *reader, k *key, m member) (T, bool) {
	return func(r *reader, k *key, m member) (T, bool) {
		v, ok := parse(&m.value)
		if !ok {
			r.wrong(&m.value, k.name, expected)
		}
		return v, ok
	}
}

// flag is true or false.
func flag(set func(bool)) scalar[bool] {
	b := scalar[bool]{text: strconv.FormatBool, parse: func(r *reader, k *key, m member) (bool, bool) { return r.flag(&m.value, k.name) }}
	if set != nil {
		b.set = func(v value[bool]) { set(v.is) }
	}
	return b
}

// choice is one of several words.
func choice(set func(value[string]), words ...string) scalar[string] {
	return scalar[string]{
		parse: simple(`"`+strings.Join(words, `" or "`)+`"`, func(n *node) (string, bool) { return n.word, n.kind == text && slices.Contains(words, n.word) }),
		text:  func(word string) string { return word },
		set:   set,
	}
}

// integer is a whole number from least to most, and standard without settings.
func integer[N int | int64](least, most int64, field *N, standard N) scalar[N] {
	*field = standard
	expected := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == math.MaxInt {
		expected = fmt.Sprintf("a whole number of at least %d", least)
	}
	return scalar[N]{
		parse: simple(expected, func(n *node) (N, bool) {
			whole, err := strconv.ParseInt(n.word, 10, 64)
			return N(whole), n.kind == number && err == nil && whole >= least && whole <= most
		}),
		text: func(v N) string { return strconv.FormatInt(int64(v), 10) },
		set:  func(v value[N]) { *field = v.is },
		get:  func() N { return *field },
	}
}

// count is a limit that is a whole number.
func count[N int | int64](least int64, field *N, standard N) scalar[N] {
	return integer(least, math.MaxInt, field, standard)
}

// lowered is a number that a workspace can only make smaller.
func lowered[N int | int64](of scalar[N]) scalar[N] {
	of.looser = func(a, b N) bool { return a > b }
	return of
}

// span is a limit that is a duration.
func span(field *time.Duration, standard time.Duration) scalar[time.Duration] {
	*field = standard
	return scalar[time.Duration]{
		parse: simple(`a number of seconds or a text like "10s", not negative`, func(n *node) (time.Duration, bool) {
			d, ok := durationOf(n)
			return d, ok && d >= 0
		}),
		text: time.Duration.String,
		set:  func(v value[time.Duration]) { *field = v.is },
	}
}

// durationOf reads a duration: a number of seconds, or as Go writes it ("10s", "24h").
func durationOf(n *node) (time.Duration, bool) {
	switch n.kind {
	case number:
		seconds, err := strconv.ParseFloat(n.word, 64)
		nanoseconds := seconds * float64(time.Second)
		return time.Duration(nanoseconds), err == nil && math.Abs(nanoseconds) < math.MaxInt64
	case text:
		d, err := time.ParseDuration(n.word)
		return d, err == nil
	}
	return 0, false
}

// entries are a list, or an object whose members are its entries. All files add to it, the highest first; of entries with
// the same identity the highest counts.
type entries[T any] struct {
	expected string // what the value is, for messages
	object   bool
	most     int                                           // of one file; 0: any number
	parse    func(r *reader, k *key, m member) (T, bool)   // reports what is wrong; the entry of a list has no key
	check    func(r *reader, all []T)                      // of one file; nil: nothing
	place    func(m *merger, k *key, s *source, v *T) bool // resolves what depends on the scope, and reports why it cannot
	managed  string                                        // the flag that lets only the administrator's entries count
	what     string                                        // what an entry is called of which another file's counts; empty: that is not reported
	waits    func(*T) bool                                 // the entry takes no lower one's place; nil: each does
	done     func(m *merger, all []T)                      // reports on what counts; nil: nothing
	sorted   func(*T) string                               // by this name; nil: they stay in the order of the files
	identity func(*T) string                               // of entries with the same one the highest counts
	line     func(k *key, v *T) (line Line)                // shows it
	field    *[]T                                          // where they go; nil: other keys ask for them
}

func (e entries[T]) read(r *reader, k *key, m member) any {
	var members []member
	switch {
	case e.object:
		members = r.members(&m.value, k.name+".")
	case m.value.kind != list:
		r.wrong(&m.value, k.name, e.expected)
		return nil
	default:
		for _, item := range m.value.items {
			members = append(members, member{line: item.line, value: item})
		}
	}
	out := []T{}
	for i, m := range members {
		if e.most > 0 && i == e.most {
			r.warn(m.line, "%s has more than %d entries; the rest has no effect", k.name, e.most)
			break
		}
		if !e.object {
			m.key = strconv.Itoa(i)
		}
		if v, ok := e.parse(r, k, m); ok {
			out = append(out, v)
		}
	}
	if e.check != nil {
		e.check(r, out)
	}
	return out
}

func (e entries[T]) merge(m *merger, k *key) {
	var all []T
	taken, dropped := map[string]origin{}, 0
	only := highest[bool](m, e.managed)
	for i := range m.sources {
		s := &m.sources[i]
		said, ok := s.values[k.name].([]T)
		if !ok || !s.trusted && !k.scope.untrusted && (len(said) == 0 || !m.counts(s, k)) {
			continue
		}
		if all == nil {
			all = []T{} // a list without entries is not the same as none
		}
		for _, v := range said {
			if isOn(only) && s.place.level != managed {
				dropped++
				continue
			}
			if e.place != nil && !e.place(m, k, s, &v) {
				continue
			}
			id, shown := e.identity(&v), e.line(k, &v)
			if by, hidden := taken[id]; hidden {
				e.hidden(m, s, &v, shown.Origin, by)
				continue
			}
			if e.waits == nil || !e.waits(&v) {
				taken[id] = origin{s, shown.Origin}
			}
			all = append(all, v)
		}
	}
	if e.sorted != nil {
		slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(e.sorted(&a), e.sorted(&b)) })
	}
	switch {
	case e.field == nil:
	case *e.field == nil:
		*e.field = all
	default:
		*e.field = append(*e.field, all...)
	}
	for i := range all {
		m.out.lines = append(m.out.lines, e.line(k, &all[i]))
	}
	if dropped > 0 {
		m.warn(only.origin, "%s: only %s of managed files count, and %d of other files have no effect.", e.managed, k.name, dropped)
	}
	if e.done != nil {
		e.done(m, all)
	}
}

// An origin is where the entry stands that counts.
type origin struct {
	source *source
	permission.Origin
}

// hidden warns of an entry of which the one of another workspace, or an earlier one of the same file, counts.
func (e entries[T]) hidden(m *merger, s *source, v *T, at permission.Origin, by origin) {
	elsewhere := by.source.place.level == workspace && by.source.place.base != s.place.base
	if e.what != "" && (by.source == s || elsewhere) {
		m.warn(at, "the %s %q has no effect: the one of %s is used instead.", e.what, shortened(e.sorted(v)), by.Origin)
	}
}

// inObjects are the members that hold the text of an entry which is written as an object, as Claude Code has it.
var inObjects = map[string]string{"sandbox.credentials.files": "path", "sandbox.credentials.envVars": "name"}

// each returns a function that parses the entries of a list of texts. parse returns what an entry stands for, or what is
// expected in its place.
func each[T any](parse func(word string, origin permission.Origin) (v T, expected string)) func(r *reader, k *key, m member) (T, bool) {
	return func(r *reader, k *key, m member) (v T, ok bool) {
		n := &m.value
		if in := n.last(inObjects[k.name]); in != nil {
			n = &in.value
		}
		expected := "a text"
		if n.kind == text {
			v, expected = parse(n.word, r.origin(n.line))
		}
		if expected != "" {
			r.wrong(n, "an entry of "+k.name, expected)
		}
		return v, expected == ""
	}
}

const listOfTexts = "a list of texts"

// texts is a list of texts: paths, or names. parse returns what an entry stands for, or what is expected in its place; nil: itself.
func texts(parse func(word string) (text, expected string), field *[]Entry) entries[Entry] {
	return entries[Entry]{
		expected: listOfTexts, field: field,
		parse: each(func(word string, origin permission.Origin) (Entry, string) {
			expected := ""
			if parse != nil {
				word, expected = parse(word)
			}
			return Entry{word, origin}, expected
		}),
		identity: func(e *Entry) string { return e.Text },
		line:     func(k *key, e *Entry) Line { return Line{k.name, e.Text, e.Origin} },
	}
}

// paths is a list of paths. place finds where one is in the scope.
func paths(parse func(word string) (path, expected string), place func(m *merger, s *source, path string) (absolute, why string), field *[]Entry) entries[Entry] {
	e := texts(parse, field)
	e.place = func(m *merger, k *key, s *source, e *Entry) bool {
		path, why := place(m, s, e.Text)
		if why != "" {
			m.warn(e.Origin, "%s: the path %q has no effect: %s.", k.name, shortened(e.Text), why)
		}
		e.Text = path
		return why == ""
	}
	return e
}
