// Package terminal is the daemon's side of an interactive program: what its screen shows, when it
// waits for input, and which secrets its output must not show. It does not know who types, and how a
// user is asked for a secret.
package terminal

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/vt"

	"github.com/toold/toold/tools/exec/sandbox"
)

const (
	// glance is how often a program is looked at: the kernel does not report that one waits.
	glance = 50 * time.Millisecond
	// quiet is how long nothing was printed when a program counts as waiting that reads the terminal,
	// and longQuiet when it polls, as it also does for other things.
	quiet     = 100 * time.Millisecond
	longQuiet = 300 * time.Millisecond
)

// Errors of Type while a program waits for a hidden line, which only a user may type.
var (
	ErrAsking   = errors.New("the program waits for a line that is not shown, and the user is asked for it")
	ErrDeclined = errors.New("the program waits for a line that is not shown, and the user, who was asked for it, gave none")
)

// An Ask asks a user for the hidden line that a program waits for, until ctx ends. ok is false if
// there is none.
type Ask func(ctx context.Context, prompt sandbox.Prompt) (secret []byte, ok bool)

// A Terminal is that of one interactive program. It is safe for concurrent use.
type Terminal struct {
	out     io.Writer
	process *sandbox.Process // set by Follow, before anything is typed
	ask     Ask              // nil: hidden lines are not asked for
	hidden  redactor         // used by Write and Close

	typing sync.Mutex // held while something is typed

	mu       sync.Mutex
	screen   *vt.Emulator // nil once the process has ended
	shown    View         // the last of the screen then
	passed   passed
	printed  int64 // bytes
	last     time.Time
	asking   bool
	declined int // the process for whose hidden line there was no answer; 0: none
}

// New returns a terminal. What programs print goes to out, without secrets.
func New(size sandbox.Size, out io.Writer) *Terminal {
	t := &Terminal{out: out, screen: vt.NewEmulator(int(size.Columns), int(size.Rows)), last: time.Now()}
	t.screen.SetScrollbackSize(mostAtOnce)
	return t
}

// Write takes what programs print. It must not be called concurrently.
func (t *Terminal) Write(p []byte) (int, error) {
	shown := t.hidden.pass(p)
	t.mu.Lock()
	t.show(shown)
	t.printed += int64(len(p))
	t.last = time.Now()
	t.mu.Unlock()
	if _, err := t.out.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Follow serves the process, which was started with the terminal, until it ends. ask may be nil.
func (t *Terminal) Follow(p *sandbox.Process, ask Ask) {
	t.process, t.ask = p, ask
	go t.respond(t.screen)
	go t.watch()
}

// maxAnswers is how many answers of the screen wait for a program that does not read them.
const maxAnswers = 64

// respond types what the screen answers, such as where its cursor is. What a program asks for and does not read is dropped: the
// screen writes its answers while Write holds it, so it must never wait for a program.
func (t *Terminal) respond(screen *vt.Emulator) {
	answers := make(chan []byte, maxAnswers)
	defer close(answers)
	go func() {
		for answer := range answers {
			_, _ = t.process.Terminal().Write(answer) // the program has gone
		}
	}()
	for {
		answer := make([]byte, 256)
		n, err := screen.Read(answer)
		if err != nil {
			return
		}
		select {
		case answers <- answer[:n]:
		default:
		}
	}
}

// watch looks for hidden prompts until the process has ended.
func (t *Terminal) watch() {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var served lastAnswer
	for {
		select {
		case <-t.process.Done():
			t.close()
			return
		case <-tick.C:
			switch {
			case t.ask == nil:
			case t.process.Terminal().Hidden():
				t.serve(&served)
			default: // the next hidden line is another one
				served = lastAnswer{}
				t.decline(0)
			}
		}
	}
}

// close shows what was held back, keeps what is on the screen, and ends respond.
func (t *Terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.show(t.hidden.rest())
	t.shown = viewOf(t.screen)
	_ = t.screen.InputPipe().(io.Closer).Close() // Close of the screen itself races with Read
	t.screen = nil                               // it may have taken megabytes
}

// Type types text, as from a keyboard. While a program waits for a hidden line it types only Ctrl-C.
func (t *Terminal) Type(text string) error {
	t.typing.Lock()
	defer t.typing.Unlock()
	if text != "\x03" {
		if t.isAsking() {
			return ErrAsking
		}
		if err := t.pends(); err != nil {
			return err
		}
	}
	_, err := t.process.Terminal().Write([]byte(text))
	return err
}

// Resize changes the size of the screen.
func (t *Terminal) Resize(size sandbox.Size) error {
	t.mu.Lock()
	if t.screen != nil {
		t.screen.Resize(int(size.Columns), int(size.Rows))
	}
	t.mu.Unlock()
	return t.process.Terminal().Resize(size)
}

func (t *Terminal) isAsking() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asking
}

// state returns how much was printed, how long ago the last of it, and whether a user is asked.
func (t *Terminal) state() (printed int64, since time.Duration, asking bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.printed, time.Since(t.last), t.asking
}

// Settle returns when the screen has been quiet for a moment and a program waits for input, and then
// true; also when a user is asked for a hidden line. It returns false when the process has ended or ctx
// ends.
func (t *Terminal) Settle(ctx context.Context) (waits bool) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for begun := time.Now(); ; {
		select {
		case <-t.process.Done():
			return false
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		_, since, asking := t.state()
		since = min(since, time.Since(begun)) // a program needs a moment to read what was typed
		if asking {
			return true
		}
		if since < quiet || errors.Is(t.pends(), ErrAsking) {
			continue
		}
		reads, polls := t.process.Terminal().Waits()
		if reads || polls && since >= longQuiet {
			return true
		}
	}
}

// AwaitAnswer returns when no user is asked for a hidden line, when the process has ended, or when ctx
// ends.
func (t *Terminal) AwaitAnswer(ctx context.Context) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for t.isAsking() {
		select {
		case <-t.process.Done():
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pends returns ErrAsking if a program waits for a hidden line that a user is about to be asked for, and
// ErrDeclined if one was and gave none.
func (t *Terminal) pends() error {
	if t.ask == nil || !t.process.Terminal().Hidden() {
		return nil
	}
	prompt, ok := t.process.Terminal().Prompt()
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if prompt.PID == t.declined {
		return ErrDeclined
	}
	return ErrAsking
}
