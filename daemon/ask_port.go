// Questions about ports: whether one on which a background task listens is opened for the user's
// browser.

package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
)

// maxPortQuestions is how many questions about ports of a session are open at the same time; ours.
// Programs that listen on more, such as tests, are asked about one after the other.
const maxPortQuestions = 3

// portQuestions begins the keys of the questions about ports.
const portQuestions = "port:"

func portKey(number int) string { return portQuestions + strconv.Itoa(number) }

// An openedPort is what a question shows of a port.
type openedPort struct {
	Port    int    `json:"port"`
	URL     string `json:"url"`
	Program string `json:"program"`
	TaskID  string `json:"task_id"`
	Command string `json:"command"` // of the task
}

// askPort asks whether the port may be opened, unless the question is open already or has to wait,
// and returns the state that the port has meanwhile.
func (ask *asker) askPort(its *state, p *servedPort) tools.PortState {
	switch {
	case its.stopping:
		return tools.PortUnanswered
	case its.questions.asked[portKey(p.Number)] != nil:
		return tools.PortAsked
	case !ask.answerable(its):
		return tools.PortUnanswered
	case its.questions.openUnder(portQuestions) >= maxPortQuestions, time.Since(p.since) < portTick:
		return tools.PortAsked // soon
	case ask.open(its, ask.ofPort(p.Number), portQuestion(p)) == nil:
		return tools.PortUnanswered
	}
	return tools.PortAsked
}

// withdrawPort takes back the question about the port, if there is one.
func (ask *asker) withdrawPort(its *state, number int, reason string) {
	if a := its.questions.asked[portKey(number)]; a != nil {
		ask.withdraw(its, a, errMoot, reason)
	}
}

// ofPort is the subject of the question about a port. The session remembers the answer.
func (ask *asker) ofPort(number int) subject {
	return subject{key: portKey(number), answered: func(its *state, no *fault.Error) func() {
		delete(its.questions.asked, portKey(number))
		if its.questions.ports == nil {
			its.questions.ports = map[int]bool{}
		}
		its.questions.ports[number] = no == nil
		its.ledger.keep(putState(keyPorts, its.questions.ports))
		return func() { ask.s.goUnlessStopping(func(context.Context) { ask.s.ports.review() }) }
	}}
}

// portQuestion is the question.
func portQuestion(p *servedPort) pipeline.Question {
	var text strings.Builder
	as := json.NewEncoder(&text)
	as.SetEscapeHTML(false)   // people read it
	_ = as.Encode(openedPort{ // strings and numbers always marshal
		Port: p.Number, URL: p.URL, Program: p.Program, TaskID: p.task.ID, Command: convert.Shortened(p.task.Command, convert.ShownInput/2),
	})
	input := strings.TrimSpace(text.String())
	reason := fmt.Sprintf("The background task %s listens on port %d in the sandbox; the program states its command line as `%s`. "+
		"A yes opens it at %s for your own programs on this machine, until it ends, and again when this session listens on that port later. "+
		"What it serves runs in your browser like any web page. Nothing of this machine is opened to the sandbox.", p.task.ID, p.Number, p.Program, p.URL)
	return pipeline.Question{
		ID: newID("port-"), Tool: "Port", Title: fmt.Sprintf("Open port %d of the sandbox at %s?", p.Number, p.URL),
		Input: input, Digest: pipeline.DigestOf(input), Facts: &permission.Facts{}, Form: &tools.Form{},
		Verdict: permission.Asking(permission.Dangerous, permission.Reason{Code: permission.OpensPort, Detail: reason}),
	}
}
