package conformance_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// driverVariable makes this test binary the driver of the Go library, which does what lines of JSON ask for: see cases.txt.
const driverVariable = "TOOLD_CONFORMANCE_DRIVER"

// A seen is what a session has seen and was asked.
type seen struct {
	mu      sync.Mutex
	changed *sync.Cond
	counts  map[string]int
	events  []string // kind and id
	epochs  []string
	answers []string
	texts   []string
}

func newSeen() *seen {
	s := &seen{counts: map[string]int{"resumed": -1}}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *seen) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.changed.Broadcast()
}

func (s *seen) count(what string) { s.note(func() { s.counts[what]++ }) }

// until waits until a condition holds, and then calls take, if it is not nil; or until ctx is done, which it reports.
func (s *seen) until(ctx context.Context, condition func() bool, take func()) bool {
	defer context.AfterFunc(ctx, func() { s.note(func() {}) })()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !condition() {
		if ctx.Err() != nil {
			return false
		}
		s.changed.Wait()
	}
	if take != nil {
		take()
	}
	return true
}

func (s *seen) event(event *tooldv1.ExecuteResponse) {
	m := event.ProtoReflect()
	arm := m.WhichOneof(m.Descriptor().Oneofs().ByName("event"))
	id := ""
	if about := m.Get(arm).Message(); about.Descriptor().Fields().ByName("tool_use_id") != nil {
		id = about.Get(about.Descriptor().Fields().ByName("tool_use_id")).String()
	}
	s.note(func() {
		s.events = append(s.events, string(arm.Name())+" "+id)
		if attached := event.GetAttached(); attached != nil {
			s.counts["resumed"]++
			if !slices.Contains(s.epochs, attached.GetEpoch()) {
				s.epochs = append(s.epochs, attached.GetEpoch())
			}
		}
	})
}

// kinds returns the kinds of the events of a call, but for its progress.
func (s *seen) kinds(id string) string {
	var kinds []string
	for _, event := range s.events {
		if kind, of, _ := strings.Cut(event, " "); of == id && kind != "progress" {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, " ")
}

func (s *seen) ask(ctx context.Context, _ *tooldv1.Question) *tooldv1.Answer {
	s.count("asked")
	answer := &tooldv1.Answer{Decision: tooldv1.Decision_DECISION_DENY}
	s.until(ctx, func() bool { return len(s.answers) > 0 }, func() {
		switch s.answers[0] {
		case "yes":
			answer.Decision = tooldv1.Decision_DECISION_ALLOW
		case "fails":
			answer = nil
		}
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
	})
	return answer
}

func (s *seen) tools() map[string]func(context.Context, string) (string, error) {
	return map[string]func(context.Context, string) (string, error){
		"double": func(_ context.Context, input string) (string, error) {
			s.count("ran")
			var in struct{ N int }
			err := json.Unmarshal([]byte(input), &in)
			return strconv.Itoa(2 * in.N), err
		},
		"fail": func(context.Context, string) (string, error) { s.count("ran"); return "", errors.New("out of order") },
		"hold": func(ctx context.Context, _ string) (text string, err error) {
			s.count("ran")
			if !s.until(ctx, func() bool { return len(s.texts) > 0 }, func() { text, s.texts = s.texts[0], s.texts[1:] }) {
				s.count("stopped")
			}
			return text, nil
		},
	}
}

// A driver is the state of the program.
type driver struct {
	address  string
	conns    map[string]*toold.Conn
	sessions map[string]*toold.Agent
	seen     map[string]*seen
	turns    map[string]*toold.Turn
}

// options are those of a session.
type options struct {
	Name, Mode, Questions, Format string
	Roots, Tools                  []string
	Buffers                       bool
	Saves, Address                string
	Value                         json.RawMessage
}

// drive does what the lines of the standard input ask for.
func drive() {
	d := &driver{address: os.Getenv("TOOLD_ADDRESS")}
	_, _ = d.do(context.Background(), "reset", nil, options{})
	for lines := bufio.NewReader(os.Stdin); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var asked struct {
			Do   string
			Args []string
			With options
		}
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		answer, err := d.do(context.Background(), asked.Do, asked.Args, asked.With)
		if err != nil {
			answer = strings.TrimSpace("error " + upperSnake(status.Code(err)) + " " + toold.Reason(err))
		}
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"answer": answer}); err != nil {
			panic(err)
		}
	}
}

// upperSnake returns the name of a code as other languages have it.
func upperSnake(code codes.Code) string {
	name := ""
	for i, r := range strings.Replace(code.String(), "Canceled", "Cancelled", 1) {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name += "_"
		}
		name += string(r)
	}
	return strings.ToUpper(name)
}

func (d *driver) dial(context.Context) (*toold.Conn, error) { return dial(d.address) }

// dial connects with the token of the driver, which a daemon on a Unix socket does not ask for.
func dial(address string) (*toold.Conn, error) {
	file, err := os.ReadFile(os.Getenv("TOOLD_TOKEN_FILE"))
	if err != nil {
		return nil, err
	}
	return toold.Connect(strings.TrimPrefix(address, "tcp://"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(token(strings.Fields(string(file))[1])))
}

type token string

func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

func (token) RequireTransportSecurity() bool { return false }

// do does one thing, for a session of the name args[0], or for a turn.
func (d *driver) do(ctx context.Context, verb string, args []string, with options) (answer any, err error) {
	switch verb {
	case "reset":
		d.reset()
	case "connect":
		return d.connect(ctx, args)
	case "session":
		return "", d.session(ctx, args[0], with)
	case "run":
		return d.sessions[args[0]].Run(ctx, string(with.Value))
	case "interrupt":
		return "", d.sessions[args[0]].Interrupt("enough")
	case "close":
		d.sessions[args[0]].Close()
	case "id_of":
		return d.sessions[args[0]].ID(), nil
	case "buffer":
		if len(args) == 2 {
			return "", d.sessions[args[0]].CloseBuffer(args[1])
		}
		return "", d.sessions[args[0]].Buffer(args[1], args[2])
	case "call", "turn":
		return "", d.begin(args, with)
	case "output", "undo":
		return d.unary(ctx, verb, d.sessions[args[0]].ID(), args[1])
	case "feed", "end", "discard", "cancel", "result":
		return d.turn(ctx, verb, d.turns[args[0]], with)
	default:
		return d.about(ctx, verb, d.seen[args[0]], args[1:])
	}
	return "", nil
}

func (d *driver) reset() {
	for _, session := range d.sessions {
		session.Close()
	}
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns, d.sessions, d.seen = map[string]*toold.Conn{}, map[string]*toold.Agent{}, map[string]*seen{}
	d.turns = map[string]*toold.Turn{}
}

func (d *driver) connect(ctx context.Context, args []string) (any, error) {
	address := d.address
	if len(args) > 1 {
		address = args[1]
	}
	conn, err := dial(address)
	if err != nil {
		return "", err
	}
	d.conns[args[0]] = conn
	_, err = conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	return "", err
}

func (d *driver) session(ctx context.Context, name string, with options) error {
	s := newSeen()
	handlers := toold.Handlers{Event: s.event, Tools: s.tools()}
	if with.Questions != "" {
		handlers.Question = s.ask
		if with.Questions != "held" {
			s.answers = []string{with.Questions}
		}
	}
	if with.Buffers {
		handlers.Edited = func(_, text string) { s.note(func() { s.texts = append(s.texts, text) }) }
	}
	if with.Saves != "" {
		handlers.Save = func(path, text string) error {
			if with.Saves == "fails" {
				return errors.New("there is no file")
			}
			return os.WriteFile(path, []byte(text), 0o600)
		}
	}
	attach := &tooldv1.Attach{SessionId: with.Name, Roots: with.Roots, Options: &tooldv1.Options{}}
	if with.Mode == "bypassPermissions" {
		attach.Options.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()
	}
	for _, tool := range with.Tools {
		schema := ""
		if tool == "double" {
			schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
		}
		attach.ClientTools = append(attach.ClientTools, &tooldv1.ClientTool{Name: tool, Description: "A tool.", InputSchemaJson: schema, ReadOnly: true})
	}
	if with.Format != "" {
		handlers.Format = tooldv1.ModelFormat(tooldv1.ModelFormat_value["MODEL_FORMAT_"+strings.ToUpper(with.Format)])
	}
	address := cmp.Or(with.Address, d.address)
	session, err := toold.Join(ctx, func(context.Context) (*toold.Conn, error) { return dial(address) }, attach, handlers)
	if err != nil {
		return err
	}
	d.sessions[name], d.seen[name] = session, s
	return nil
}

func (d *driver) begin(args []string, with options) (err error) {
	session, name := d.sessions[args[0]], args[1]
	if len(args) == 2 {
		d.turns[name] = session.Turn()
		return nil
	}
	d.turns[name], err = session.Start(&tooldv1.ToolUse{Id: name, Name: args[2], Arguments: &tooldv1.ToolUse_InputJson{InputJson: string(with.Value)}})
	return err
}

func (d *driver) turn(ctx context.Context, verb string, turn *toold.Turn, with options) (any, error) {
	switch verb {
	case "feed":
		var events []json.RawMessage
		if err := json.Unmarshal(with.Value, &events); err != nil {
			return nil, err
		}
		for _, event := range events {
			if err := turn.Feed(string(event)); err != nil {
				return nil, err
			}
		}
	case "end":
		return turn.End(ctx)
	case "discard":
		return "", turn.Discard(ctx)
	case "cancel":
		return "", turn.Cancel("enough")
	case "result":
		result, err := turn.Result(ctx)
		if err != nil {
			return nil, err
		}
		text := result.GetError().GetCode()
		for _, content := range result.GetContent() {
			if result.GetError().GetCode() == "" {
				text += content.GetText()
			}
		}
		return strings.TrimPrefix(result.GetOutcome().String(), "OUTCOME_") + " " + text, nil
	}
	return "", nil
}

func (d *driver) unary(ctx context.Context, verb, session, call string) (string, error) {
	conn, err := d.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if verb == "undo" {
		_, err := conn.Sessions.Restore(ctx, &tooldv1.RestoreRequest{SessionId: session, Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: call}})
		return "", err
	}
	stream, err := conn.Tools.ReadOutput(ctx, &tooldv1.ReadOutputRequest{SessionId: session, ToolUseId: call})
	for all := ""; ; {
		if err != nil {
			return all, err
		}
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all += string(part.GetData())
	}
}

// about does what concerns what a session has seen.
func (d *driver) about(ctx context.Context, verb string, s *seen, args []string) (answer string, err error) {
	switch verb {
	case "count":
		least, err := strconv.Atoi(args[1])
		if err != nil {
			return "", err
		}
		s.until(ctx, func() bool { return s.counts[args[0]] >= least }, func() { answer = strconv.Itoa(s.counts[args[0]]) })
	case "sees":
		s.until(ctx, func() bool { return slices.Contains(s.events, args[0]+" "+args[1]) }, nil)
	case "events":
		s.note(func() { answer = s.kinds(args[0]) })
	case "epochs":
		s.note(func() { answer = strconv.Itoa(len(s.epochs)) })
	case "answer":
		s.note(func() { s.answers = append(s.answers, args[0]) })
	case "finish":
		s.note(func() { s.texts = append(s.texts, args[0]) })
	case "edited":
		s.until(ctx, func() bool { return len(s.texts) > 0 }, func() { answer, s.texts = s.texts[0], s.texts[1:] })
	default:
		panic(fmt.Sprintf("the driver has no %q", verb))
	}
	return answer, nil
}

// driveIfAsked does not return where this binary is the driver.
func driveIfAsked() {
	if os.Getenv(driverVariable) != "" {
		drive()
		os.Exit(0)
	}
}
