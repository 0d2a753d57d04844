// Questions put to the user at the terminal, one at a time. It never answers by itself.

package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A Prompter puts questions to the user at the terminal. All its methods but prompt are for one goroutine. Without a terminal
// it asks nothing.
type Prompter struct {
	terminal *os.File // nil: there is none
	ink      Ink
	// whole returns a call's input as it was sent, because a question may show it shortened; false: not known here.
	whole func(toolUseID string) (string, bool)

	// Passing means that the session ends with the turn, and the rules that it keeps with it.
	Passing bool
	// Top is how many rows at the top of the screen are kept for the live view while a question stands. 0: none.
	Top int

	screen sync.Mutex // guards what follows
	placed int        // rows that are kept at the top of the screen as it is now; 0: none
	below  int        // the row that the cursor is in, counted from the top, if placed

	queue   []*tooldv1.Question
	current *tooldv1.Question
	given   []*tooldv1.Question // answered, and the daemon has not yet said that they are settled
	out     chan *tooldv1.Answer
	cancel  context.CancelFunc
	done    chan struct{} // closed when the goroutine that asks current has ended
}

// NewPrompter opens the terminal, if a user is there to be asked.
func NewPrompter(shown Terminal, whole func(string) (string, bool)) *Prompter {
	p := &Prompter{ink: shown.Ink, whole: whole, out: make(chan *tooldv1.Answer)}
	if shown.Terminal {
		if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			p.terminal = terminal
		}
	}
	return p
}

// Asks reports whether there is a user to be asked.
func (p *Prompter) Asks() bool { return p.terminal != nil }

// ErrNone is wrapped by the error of [Ask] when the process has no controlling terminal.
var ErrNone = errors.New("no terminal")

// Ask writes question to the controlling terminal and returns the line that the user types. What was typed before the
// question was shown is discarded.
func Ask(question string) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNone, err)
	}
	defer tty.Close()
	dropInput(tty)
	if _, err := tty.WriteString(question); err != nil {
		return "", err
	}
	return (&Prompter{terminal: tty}).line()
}

// Close takes away the question that stands and closes the terminal.
func (p *Prompter) Close() {
	if p.Busy() {
		p.tell("\n") // the prompt stands in the last line
	}
	p.Forget()
	_ = p.terminal.Close()
}

// Busy reports whether a question stands on the terminal.
func (p *Prompter) Busy() bool { return p.current != nil }

// Answers returns the channel on which answers come. After each receive the caller calls Answered.
func (p *Prompter) Answers() <-chan *tooldv1.Answer { return p.out }

// ask queues a question. One that is asked again is asked once.
func (p *Prompter) ask(ctx context.Context, q *tooldv1.Question) {
	same := func(other *tooldv1.Question) bool { return other.GetQuestionId() == q.GetQuestionId() }
	if !p.Asks() || p.Busy() && same(p.current) || slices.ContainsFunc(p.queue, same) {
		return
	}
	p.queue = append(p.queue, q)
	p.next(ctx)
}

// next puts the next question, unless one stands.
func (p *Prompter) next(ctx context.Context) {
	if p.Busy() || len(p.queue) == 0 {
		return
	}
	p.current, p.queue = p.queue[0], p.queue[1:]
	asked, cancel := context.WithCancel(ctx)
	p.cancel, p.done = cancel, make(chan struct{})
	go func(q *tooldv1.Question, done chan struct{}, top int) {
		defer close(done)
		p.place(top)
		defer p.place(0)
		answer := p.prompt(asked, q, top)
		if answer == nil {
			return
		}
		select {
		case p.out <- answer:
		case <-asked.Done():
		}
	}(p.current, p.done, p.Top)
}

// dismiss takes the question that stands away. While an editor is open on it, this waits until it is closed: the
// terminal is not taken from under it.
func (p *Prompter) dismiss() {
	if !p.Busy() {
		return
	}
	p.cancel()
	<-p.done
	p.current = nil
}

// Answered is done with the question that stood, for which an answer was sent, and puts the next one.
func (p *Prompter) Answered(ctx context.Context) {
	if !p.Busy() {
		return
	}
	p.given = append(p.given, p.current)
	p.dismiss()
	p.next(ctx)
}

// Refused asks again what was answered, because the daemon did not take the answer and the question is still open. It
// reports whether there was anything to ask again.
func (p *Prompter) Refused(ctx context.Context, why string) bool {
	if len(p.given) == 0 {
		return false
	}
	again := p.given
	p.given = nil
	p.tell("\nThe answer was not taken: " + VisibleLine(why) + "\n")
	for _, q := range again {
		p.ask(ctx, q)
	}
	return true
}

// Forget forgets everything that was asked, because the stream that asked is over.
func (p *Prompter) Forget() {
	p.dismiss()
	p.queue, p.given = nil, nil
}

// Take takes note of an event: a question is asked, and one that no longer matters forgotten.
func (p *Prompter) Take(ctx context.Context, event *tooldv1.ExecuteResponse) {
	switch e := event.GetEvent().(type) {
	case *tooldv1.ExecuteResponse_Question:
		p.ask(ctx, e.Question)
	case *tooldv1.ExecuteResponse_QuestionWithdrawn:
		id := e.QuestionWithdrawn.GetQuestionId()
		p.drop(ctx, e.QuestionWithdrawn.GetReason(), func(q *tooldv1.Question) bool { return q.GetQuestionId() == id })
	case *tooldv1.ExecuteResponse_ToolResult: // its call has ended
		id := e.ToolResult.GetToolUseId()
		p.drop(ctx, "", func(q *tooldv1.Question) bool { return q.GetToolUseId() == id })
	}
}

func (p *Prompter) drop(ctx context.Context, why string, moot func(*tooldv1.Question) bool) {
	p.queue, p.given = slices.DeleteFunc(p.queue, moot), slices.DeleteFunc(p.given, moot)
	if p.Busy() && moot(p.current) {
		p.dismiss()
		p.tell("\nThe question is withdrawn" + reasonWords(why) + ".\n")
		p.next(ctx)
	}
}

func (p *Prompter) tell(text string) {
	p.screen.Lock()
	defer p.screen.Unlock()
	width, _ := p.size()
	p.below += rowsOf(text, width)
	_, _ = p.terminal.WriteString(text)
}

// size is that of the terminal; height 0: it is not known.
func (p *Prompter) size() (width, height int) {
	return Terminal{file: p.terminal, Terminal: true}.Size()
}

// place begins a new screen with so many rows kept at its top; 0: the screen goes on as it is. What was there before
// scrolls away and is not lost.
func (p *Prompter) place(top int) {
	p.screen.Lock()
	defer p.screen.Unlock()
	p.placed, p.below = top, top
	if _, height := p.size(); top > 0 {
		_, _ = p.terminal.WriteString(strings.Repeat("\n", height) + "\x1b[H" + strings.Repeat("\n", top))
	}
}

// spareRows are those that must be left below the cursor while rows at the top are drawn: what is typed may wrap. Ours.
const spareRows = 3

// Draw draws lines into the rows that are kept at the top, if they are still there: the screen has not scrolled.
func (p *Prompter) Draw(lines []string) {
	p.screen.Lock()
	defer p.screen.Unlock()
	if _, height := p.size(); p.placed == 0 || p.below+spareRows > height {
		return
	}
	var out strings.Builder
	out.WriteString("\x1b7\x1b[H")
	for i := range p.placed {
		if i < len(lines) {
			out.WriteString(lines[i])
		}
		out.WriteString("\x1b[K\n")
	}
	_, _ = p.terminal.WriteString(out.String() + "\x1b8")
}

// prompt shows a question and returns its answer; nil when ctx ended first. What was typed before it was shown counts
// for nothing.
func (p *Prompter) prompt(ctx context.Context, q *tooldv1.Question, top int) *tooldv1.Answer {
	width, height := p.size()
	text, hidden := fitQuestion(q, p.ink, width, max(height-top-promptRows, 0))
	p.tell(text)
	_ = p.terminal.SetReadDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { _ = p.terminal.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	dropInput(p.terminal)
	switch {
	case q.GetSecret() != nil:
		return p.secret(ctx, q)
	case q.GetConnection() != nil:
		return p.connection(ctx, q)
	case q.GetFormSchemaJson() != "":
		return p.form(ctx, q)
	}
	details := ""
	if hidden > 0 {
		details = "[d]etails, "
	}
	prompt := p.ink.Strong.Render("Run it?") + " [y]es, [n]o (n REASON tells the model why), [a]lways, [e]dit, " + details + "?: "
	return p.decide(ctx, q, prompt, func(word, rest string) *tooldv1.Answer {
		switch word {
		case "y", "yes":
			return reply(q, tooldv1.Decision_DECISION_ALLOW, "")
		case "a", "always":
			return p.always(ctx, q, rest)
		case "e", "edit":
			p.place(0) // the screen is the editor's
			return p.edit(q)
		case "d", "details":
			p.tell(QuestionText(q, p.ink) + questionHead(q, p.ink))
		case "":
		default:
			p.tell(answersText)
		}
		return nil
	})
}

// connection asks whether a program of a running call may connect to a host; nil when ctx ended first.
func (p *Prompter) connection(ctx context.Context, q *tooldv1.Question) *tooldv1.Answer {
	prompt := p.ink.Strong.Render("Let it connect?") + " [y]es, [n]o, [a]lways, ?: "
	return p.decide(ctx, q, prompt, func(word, rest string) *tooldv1.Answer {
		switch word {
		case "y", "yes":
			return reply(q, tooldv1.Decision_DECISION_ALLOW, "")
		case "a", "always":
			return p.always(ctx, q, rest)
		case "":
		default:
			p.tell(connectionText)
		}
		return nil
	})
}

// connectionText is answersText for a question about a host.
const connectionText = `  y         lets this call connect to the host, at each port
  n         refuses the host for the rest of this call, which goes on without it
  a         lets it connect, and keeps a rule by which the host is not asked about again: for the session, or for you
`

// decide asks until the user says no, or something else of which other makes an answer; nil when ctx ended first.
func (p *Prompter) decide(ctx context.Context, q *tooldv1.Question, prompt string, other func(word, rest string) *tooldv1.Answer) *tooldv1.Answer {
	for ctx.Err() == nil {
		p.tell(prompt)
		line, err := p.line()
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch word = strings.ToLower(word); {
		case ctx.Err() != nil:
		case err != nil:
			return noAnswer(q)
		case word == "n", word == "no":
			return reply(q, tooldv1.Decision_DECISION_DENY, rest)
		default:
			if answer := other(word, rest); answer != nil {
				return answer
			}
		}
	}
	return nil
}

// promptRows are those of the prompt, which wraps on a narrow terminal, with what is typed there. Ours.
const promptRows = 4

// answersText is shown when the user types ? or anything else that is not an answer.
const answersText = `  y         runs it, this once
  n         does not run it; "n REASON" also tells the model why
  a         runs it, and keeps a rule by which the like of it is not asked about again: you choose which, and where
  d         shows all of the question again
  e         opens the input in your editor and runs what you make of it
`

// line reads one line. In the terminal's line mode a read never returns more than one.
func (p *Prompter) line() (string, error) {
	var buffer [4096]byte
	n, err := p.terminal.Read(buffer[:])
	p.screen.Lock()
	p.below++ // the line's end was shown
	p.screen.Unlock()
	return string(buffer[:n]), err
}

// noAnswer is the reply where the terminal cannot be read.
func noAnswer(q *tooldv1.Question) *tooldv1.Answer {
	return reply(q, tooldv1.Decision_DECISION_DENY, "The user gave no answer.")
}

func reply(q *tooldv1.Question, d tooldv1.Decision, message string) *tooldv1.Answer {
	return &tooldv1.Answer{
		QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: d,
		Message: strings.ToValidUTF8(message, "\uFFFD"),
	}
}

// edit lets the user change the input; nil when nothing comes of it.
func (p *Prompter) edit(q *tooldv1.Question) *tooldv1.Answer {
	input, known := p.whole(q.GetToolUseId())
	if !known {
		p.tell("The whole input is only known to the client that sent it, so it cannot be edited here.\n")
		return nil
	}
	edited, err := editText(p.terminal, Pretty(input))
	if err != nil {
		p.tell("The editor failed: " + VisibleLine(err.Error()) + ". Set EDITOR to one that works.\n")
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(edited), &object); err != nil {
		p.tell("What you wrote is not a JSON object: " + VisibleLine(err.Error()) + ". Nothing was sent.\n")
		return nil
	}
	answer := reply(q, tooldv1.Decision_DECISION_ALLOW, "")
	answer.UpdatedInputJson = edited
	return answer
}
