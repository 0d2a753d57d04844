package settings

import (
	"slices"
	"strings"
)

// Forwarding is what becomes of a port on which a background task listens. Greater values are
// stricter. The zero value is the default.
type Forwarding int8

// The values of sandbox.network.forwardPorts.
const (
	ForwardAlways Forwarding = iota - 1 // it is opened on the user's loopback
	ForwardAsk                          // it is opened after a question
	ForwardNever                        // it stays in the sandbox
)

var forwardWords = []string{"always", "ask", "never"} // from ForwardAlways on

func (f Forwarding) String() string { return forwardWords[f-ForwardAlways] }

// A forwarding is one of those words. The administrator's file counts before the user's, and a
// stricter value of a session or of a workspace beats both, whether it is trusted or not.
type forwarding struct{ field *Forwarding }

func (f forwarding) read(r *reader, k *key, m member) any {
	at := slices.Index(forwardWords, m.value.word)
	if m.value.kind != text || at < 0 {
		r.wrong(&m.value, k.name, `"`+strings.Join(forwardWords, `" or "`)+`"`)
		return nil
	}
	is := ForwardAlways + Forwarding(at)
	if is == ForwardAlways && r.place.level != user && r.place.level != managed {
		r.idle(m.line, k.name+" always", "only the user's or the administrator's file can set it")
		return nil
	}
	return &value[Forwarding]{is, r.origin(m.value.line)}
}

func (f forwarding) merge(m *merger, k *key) {
	var base, counts *value[Forwarding]
	for _, s := range m.sources { // the highest first
		if v, _ := s.values[k.name].(*value[Forwarding]); v != nil && base == nil && (s.place.level == user || s.place.level == managed) {
			base = v
		}
	}
	if base != nil {
		*f.field, counts = base.is, base
	}
	for _, s := range m.sources {
		if v, _ := s.values[k.name].(*value[Forwarding]); v != nil && v.is > *f.field {
			*f.field, counts = v.is, v
		}
	}
	if counts != nil {
		m.line(k.name, counts.is.String(), counts.origin)
	}
}
