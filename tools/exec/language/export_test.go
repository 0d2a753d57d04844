//go:build !no_lsp

package language

import "time"

// Hurry lets a server that has ended be started again at once.
func (s *Set) Hurry() { s.limits.firstBackOff = time.Millisecond }

// Shorten makes the limits short that are meant for servers that never do what is waited for.
func (s *Set) Shorten() {
	s.limits = limits{answer: time.Second, start: 2 * time.Second, load: time.Second, publish: time.Second, base: time.Second, firstBackOff: time.Millisecond}
}
