// Hidden lines: asking for one, typing it, and keeping it out of what is shown.

package terminal

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/tools/exec/sandbox"
)

// taking is how long after an answer, without anything printed, a prompt counts as the same: the program is about to read the
// line. Ours.
const taking = time.Second

// A lastAnswer is the last line that was typed for the prompts so far.
type lastAnswer struct {
	printed int64 // how much had been printed then
	at      time.Time
}

// serve asks for the hidden line that a program waits for, if one does, and types it. Without an answer
// it types Ctrl-C, and does not ask for the same process again until its lines are shown.
func (t *Terminal) serve(last *lastAnswer) {
	printed, since, _ := t.state()
	if since < quiet || printed == last.printed && time.Since(last.at) < taking {
		return // it is about to print its prompt, or to read the last line
	}
	prompt, ok := t.process.Terminal().Prompt()
	if !ok || t.hasDeclined(prompt.PID) {
		return
	}
	t.setAsking(true)
	defer t.setAsking(false)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := make(chan struct{})
	go func() { defer close(gone); t.awaitEnd(ctx, prompt); cancel() }()
	secret, ok := t.ask(ctx, prompt)
	cancel()
	<-gone
	t.typing.Lock()
	defer t.typing.Unlock()
	now, still := t.process.Terminal().Prompt()
	switch {
	case !still || now.PID != prompt.PID: // what reads now is another program
		return
	case !ok:
		t.decline(prompt.PID)
		_, _ = t.process.Terminal().Write([]byte("\x03"))
		return
	}
	*last = lastAnswer{printed, time.Now()}
	t.hidden.add(secret)
	_ = t.process.Terminal().Forget() // what was typed ahead would become the beginning of the line
	_, _ = t.process.Terminal().Write(append(slices.Clone(secret), '\n'))
}

// awaitEnd returns when the program no longer waits for the line, or ctx ends.
func (t *Terminal) awaitEnd(ctx context.Context, prompt sandbox.Prompt) {
	tick := time.NewTicker(4 * glance)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.process.Done():
			return
		case <-tick.C:
			if now, ok := t.process.Terminal().Prompt(); !ok || now.PID != prompt.PID {
				return
			}
		}
	}
}

// decline notes the process for which there was no answer; 0: none.
func (t *Terminal) decline(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.declined = pid
}

func (t *Terminal) hasDeclined(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.declined == pid
}

func (t *Terminal) setAsking(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking = is
}

// mark replaces a secret.
const mark = "[redacted]"

const (
	// leastSecret is how many bytes a secret has that is replaced: fewer occur anywhere, and marks for them would
	// destroy the screen.
	leastSecret = 4
	// shortest is how many bytes of a secret's beginning, at the end of all output, are replaced too.
	shortest = 3
)

// A redactor replaces secrets in a stream of bytes, however it is cut into pieces. add may be called
// concurrently with the other methods.
type redactor struct {
	mu      sync.Mutex
	secrets [][]byte // the longest first
	held    []byte   // the beginning of a secret, perhaps
}

// add replaces a secret from now on.
func (r *redactor) add(secret []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(secret) < leastSecret {
		return
	}
	r.secrets = append(r.secrets, slices.Clone(secret))
	slices.SortStableFunc(r.secrets, func(a, b []byte) int { return len(b) - len(a) })
}

// pass returns what of the stream can be shown by now. What may be the beginning of a secret is held
// back until more comes.
func (r *redactor) pass(p []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.secrets) == 0 {
		return p
	}
	left := append(r.held, p...)
	shown := make([]byte, 0, len(left))
	for len(left) > 0 && !r.begins(left) {
		n := r.at(left)
		if n > 0 {
			shown = append(shown, mark...)
		} else {
			n = 1
			shown = append(shown, left[0])
		}
		left = left[n:]
	}
	r.held = slices.Clone(left)
	return shown
}

// at returns the length of the longest secret with which p begins; 0: it begins with none.
func (r *redactor) at(p []byte) int {
	for _, secret := range r.secrets {
		if bytes.HasPrefix(p, secret) {
			return len(secret)
		}
	}
	return 0
}

// begins reports whether p, with what comes next, may be a secret that is not whole yet.
func (r *redactor) begins(p []byte) bool {
	return slices.ContainsFunc(r.secrets, func(secret []byte) bool { return len(p) < len(secret) && bytes.HasPrefix(secret, p) })
}

// rest returns what is still held back at the end.
func (r *redactor) rest() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.held
	if r.held = nil; len(held) >= shortest {
		return []byte(mark)
	}
	return held
}
