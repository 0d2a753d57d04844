package daemon

import (
	"crypto/sha256"
	"errors"
	"net"
	"strings"
	"time"
)

// SetGrace changes how long the calls of a client that went away go on. Before Serve.
func (d *Daemon) SetGrace(grace time.Duration) { d.grace = grace }

// Retain looks through the journal as if it were then.
func (d *Daemon) Retain(now time.Time) error { return d.retain(now) }

// SweepCheckpoints drops checkpoints as it would be done at that time.
func (d *Daemon) SweepCheckpoints(now time.Time) error { return d.sweepCheckpoints(now) }

// ParseTokens reads the text of a token file, and gives the names of the words in it that are tokens.
func ParseTokens(text []byte) (names map[string]string, err error) {
	tokens, err := parseTokens("tokens", text)
	names = map[string]string{}
	for _, word := range strings.Fields(string(text)) {
		for _, t := range tokens {
			if t.hash == sha256.Sum256([]byte(word)) {
				names[word] = t.name
			}
		}
	}
	if err == nil && len(names) != len(tokens) {
		err = errors.New("a token is none of the words")
	}
	return names, err
}

// LetIn takes a connection through a gate, as that of somebody who has not shown yet who he is.
func LetIn(conn net.Conn) {
	g := newGate()
	g.enter(&visitor{Conn: conn, door: &door{gate: g}})
}

// StrangerTime is how long he has.
const StrangerTime = strangerTime

// Errands is how many errands of a session are held.
func (d *Daemon) Errands(session string) int {
	s, _ := d.session(session)
	return view(s, func(its *state) int { return len(its.clients.errands) })
}
