// Lines such as passwords, which are not shown when they are typed.

package terminal

import (
	"context"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// secret asks for the line, and does not show it; nil when ctx ended first. An empty line is a no.
func (p *Prompter) secret(ctx context.Context, q *tooldv1.Question) *tooldv1.Answer {
	shown, err := hideInput(p.terminal)
	if err != nil {
		return reply(q, tooldv1.Decision_DECISION_DENY, "The terminal cannot hide what is typed.")
	}
	defer shown()
	p.tell(p.ink.Strong.Render("For "+VisibleLine(q.GetSecret().GetProgram())) + " (not shown; an empty line refuses): ")
	line, err := p.line()
	p.tell("\n")
	switch secret := strings.TrimRight(line, "\r\n"); {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return noAnswer(q)
	case secret == "":
		return reply(q, tooldv1.Decision_DECISION_DENY, "")
	default:
		answer := reply(q, tooldv1.Decision_DECISION_ALLOW, "")
		answer.Secret = secret
		return answer
	}
}

// hideInput stops showing what is typed, until shown is called.
func hideInput(terminal *os.File) (shown func(), err error) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return nil, err
	}
	var was *unix.Termios
	set := func(mode *unix.Termios) (failed error) {
		if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetTermios(int(fd), setModes, mode) }); err != nil {
			return err
		}
		return failed
	}
	if failed := raw.Control(func(fd uintptr) { was, err = unix.IoctlGetTermios(int(fd), getModes) }); failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	return func() { _ = set(was) }, set(&hidden)
}
