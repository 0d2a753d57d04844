// Questions put to the person at the terminal, one at a time. This file does not know why the daemon asks, nor where
// an answer goes; it never answers by itself.

package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A person is somebody at a terminal. All its methods but put are for one goroutine; they also work on nil, which is
// nobody.
type person struct {
	terminal *os.File
	ink      ink
	// whole gives a call's input as it was sent, because a question may show it shortened; false: not known here.
	whole func(toolUseID string) (string, bool)
	// passing: the session ends with the turn, and rules that it keeps with it.
	passing bool

	// top is how many rows at the top of the screen are kept for the live view while a question stands. 0: none.
	top int

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

// meet opens the terminal; nil when nobody is there to be asked.
func meet(shown page, whole func(string) (string, bool)) *person {
	if !shown.terminal {
		return nil
	}
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return &person{terminal: terminal, ink: shown.ink, whole: whole, out: make(chan *tooldv1.Answer)}
}

func (p *person) close() {
	if p == nil {
		return
	}
	if p.busy() {
		p.tell("\n") // the prompt stands in the last line
	}
	p.leave()
	_ = p.terminal.Close()
}

// passes says whether the session ends with the turn, and the rules that it keeps with it.
func (p *person) passes(passing bool) {
	if p != nil {
		p.passing = passing
	}
}

func (p *person) busy() bool { return p != nil && p.current != nil }

func (p *person) answers() <-chan *tooldv1.Answer {
	if p == nil {
		return nil
	}
	return p.out
}

// ask queues a question. One that is asked again is asked once.
func (p *person) ask(ctx context.Context, q *tooldv1.Question) {
	if p == nil || p.busy() && p.current.GetQuestionId() == q.GetQuestionId() {
		return
	}
	for _, queued := range p.queue {
		if queued.GetQuestionId() == q.GetQuestionId() {
			return
		}
	}
	p.queue = append(p.queue, q)
	p.next(ctx)
}

// next puts the next question, unless one stands.
func (p *person) next(ctx context.Context) {
	if p == nil || p.current != nil || len(p.queue) == 0 {
		return
	}
	p.current, p.queue = p.queue[0], p.queue[1:]
	asked, cancel := context.WithCancel(ctx)
	p.cancel, p.done = cancel, make(chan struct{})
	go func(q *tooldv1.Question, done chan struct{}, top int) {
		defer close(done)
		p.place(top)
		defer p.place(0)
		answer := p.put(asked, q, top)
		if answer == nil {
			return
		}
		select {
		case p.out <- answer:
		case <-asked.Done():
		}
	}(p.current, p.done, p.top)
}

// dismiss takes the question that stands away. While an editor is open on it, this waits until it is closed: the
// terminal is not taken from under it.
func (p *person) dismiss() {
	if !p.busy() {
		return
	}
	p.cancel()
	<-p.done
	p.current = nil
}

// answered is done with the question that stood, for which an answer was sent, and puts the next one.
func (p *person) answered(ctx context.Context) {
	if !p.busy() {
		return
	}
	p.given = append(p.given, p.current)
	p.dismiss()
	p.next(ctx)
}

// refused asks again what was answered, because the daemon did not take the answer and the question is still open. It
// reports whether there was anything to ask again.
func (p *person) refused(ctx context.Context, why string) bool {
	if p == nil || len(p.given) == 0 {
		return false
	}
	again := p.given
	p.given = nil
	p.tell("\nThe answer was not taken: " + visibleLine(why) + "\n")
	for _, q := range again {
		p.ask(ctx, q)
	}
	return true
}

// leave forgets everything that was asked, because the stream that asked is over.
func (p *person) leave() {
	if p != nil {
		p.dismiss()
		p.queue, p.given = nil, nil
	}
}

// withdraw forgets a question that no longer matters.
func (p *person) withdraw(ctx context.Context, id, why string) {
	p.drop(ctx, why, func(q *tooldv1.Question) bool { return q.GetQuestionId() == id })
}

// withdrawCall forgets the questions of a call that has ended.
func (p *person) withdrawCall(ctx context.Context, id string) {
	p.drop(ctx, "", func(q *tooldv1.Question) bool { return q.GetToolUseId() == id })
}

func (p *person) drop(ctx context.Context, why string, moot func(*tooldv1.Question) bool) {
	if p == nil {
		return
	}
	p.queue, p.given = slices.DeleteFunc(p.queue, moot), slices.DeleteFunc(p.given, moot)
	if p.busy() && moot(p.current) {
		p.dismiss()
		p.tell("\nThe question is withdrawn" + reasonWords(why) + ".\n")
		p.next(ctx)
	}
}

func (p *person) tell(text string) {
	p.screen.Lock()
	defer p.screen.Unlock()
	width, _ := p.size()
	p.below += rowsOf(text, width)
	_, _ = p.terminal.WriteString(text)
}

// size is that of the terminal; height 0: it is not known.
func (p *person) size() (width, height int) { return page{file: p.terminal, terminal: true}.size() }

// place begins a new screen with so many rows kept at its top; 0: the screen goes on as it is. What was there before
// scrolls away and is not lost.
func (p *person) place(top int) {
	p.screen.Lock()
	defer p.screen.Unlock()
	p.placed, p.below = top, top
	if _, height := p.size(); top > 0 {
		_, _ = p.terminal.WriteString(strings.Repeat("\n", height) + "\x1b[H" + strings.Repeat("\n", top))
	}
}

// spareRows are those that must be left below the cursor while rows at the top are drawn: what is typed may wrap. Ours.
const spareRows = 3

// draw draws lines into the rows that are kept at the top, if they are still there: the screen has not scrolled.
func (p *person) draw(lines []string) {
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

// put shows a question and returns its answer; nil when ctx ended first. What was typed before it was shown counts
// for nothing.
func (p *person) put(ctx context.Context, q *tooldv1.Question, top int) *tooldv1.Answer {
	width, height := p.size()
	text, hidden := fitQuestion(q, p.ink, width, max(height-top-promptRows, 0))
	p.tell(text)
	_ = p.terminal.SetReadDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { _ = p.terminal.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	dropInput(p.terminal)
	if q.GetFormSchemaJson() != "" {
		return p.form(ctx, q)
	}
	details := ""
	if hidden > 0 {
		details = "[d]etails, "
	}
	for {
		p.tell(p.ink.strong.Render("Run it?") + " [y]es, [n]o (n REASON tells the model why), [a]lways, [e]dit, " + details + "?: ")
		line, err := p.line()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return reply(q, tooldv1.Decision_DECISION_DENY, "The user gave no answer.")
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			return reply(q, tooldv1.Decision_DECISION_ALLOW, "")
		case "n", "no":
			return reply(q, tooldv1.Decision_DECISION_DENY, strings.TrimSpace(rest))
		case "a", "always":
			if answer := p.always(ctx, q, strings.TrimSpace(rest)); answer != nil {
				return answer
			}
		case "d", "details":
			p.tell(questionText(q, p.ink) + questionHead(q, p.ink))
		case "e", "edit":
			p.place(0) // the screen is the editor's
			if answer := p.edit(q); answer != nil {
				return answer
			}
		case "":
		default:
			p.tell(answersText)
		}
	}
}

// promptRows are those of the prompt, which wraps on a narrow terminal, with what is typed there. Ours.
const promptRows = 4

// answersText is shown to whoever types ? or anything else that is no answer.
const answersText = `  y         runs it, this once
  n         does not run it; "n REASON" also tells the model why
  a         runs it, and keeps a rule by which the like of it is not asked about again: you choose which, and where
  d         shows all of the question again
  e         opens the input in your editor and runs what you make of it
`

// line reads one line. In the terminal's line mode a read never gives more than one.
func (p *person) line() (string, error) {
	var buffer [4096]byte
	n, err := p.terminal.Read(buffer[:])
	p.screen.Lock()
	p.below++ // the line's end was shown
	p.screen.Unlock()
	return string(buffer[:n]), err
}

func reply(q *tooldv1.Question, d tooldv1.Decision, message string) *tooldv1.Answer {
	return &tooldv1.Answer{
		QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: d,
		Message: strings.ToValidUTF8(message, "\uFFFD"),
	}
}

// edit lets the person change the input; nil when nothing comes of it.
func (p *person) edit(q *tooldv1.Question) *tooldv1.Answer {
	input, known := p.whole(q.GetToolUseId())
	if !known {
		p.tell("The whole input is only known to the client that sent it, so it cannot be edited here.\n")
		return nil
	}
	edited, err := editText(p.terminal, pretty(input))
	if err != nil {
		p.tell("The editor failed: " + visibleLine(err.Error()) + ". Set EDITOR to one that works.\n")
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(edited), &object); err != nil {
		p.tell("What you wrote is not a JSON object: " + visibleLine(err.Error()) + ". Nothing was sent.\n")
		return nil
	}
	answer := reply(q, tooldv1.Decision_DECISION_ALLOW, "")
	answer.UpdatedInputJson = edited
	return answer
}
