// The other side's daemon, and a client of it that answers each question with yes.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/bench/wire"
	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A client is a session on a daemon of its own.
type client struct {
	toold, socket string
	*toold.Session
	calls int
}

// connect starts a daemon with the side's environment and attaches a session in its project.
func connect(ctx context.Context, s *side, setting Setting) (*client, error) {
	c := &client{toold: setting.Toold, socket: filepath.Join(s.state, "toold.sock")}
	start := exec.CommandContext(ctx, c.toold, "start", "--socket", c.socket)
	start.Env, start.Dir = append(slices.Clip(s.environ), "XDG_STATE_HOME="+s.dir+"/state"), s.project()
	if out, err := start.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s start: %w\n%s", c.toold, err, out)
	}
	mode := tooldv1.PermissionMode_PERMISSION_MODE_DEFAULT
	if setting.Mode == "bypass" {
		mode = tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS
	}
	env := map[string]string{}
	for _, pair := range s.environ {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	var err error
	c.Session, err = toold.Open(ctx, func(context.Context) (*toold.Conn, error) { return wire.Dial(c.socket) }, &tooldv1.Attach{
		SessionId: "day", Roots: []string{s.project()}, Client: &tooldv1.ClientInfo{Name: "day"}, Env: env,
		Options: &tooldv1.Options{PermissionMode: &mode}, Capabilities: &tooldv1.Capabilities{Answers: true},
	})
	return c, err
}

func (c *client) close() {
	c.Close()
	_ = exec.Command(c.toold, "stop", "--socket", c.socket).Run()
}

// run sends one command and waits for its result.
func (c *client) run(command string) (e end, err error) {
	c.calls++
	id := strconv.Itoa(c.calls)
	input, err := json.Marshal(map[string]any{"command": command, "timeout": commandTime.Milliseconds()})
	if err != nil {
		return end{}, err
	}
	began := time.Now()
	for _, m := range []*tooldv1.ExecuteRequest{
		{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
			Id: id, Name: "Bash", TurnId: id, Arguments: &tooldv1.ToolUse_InputJson{InputJson: string(input)},
		}}},
		{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: id}}},
	} {
		if err := c.Send(m); err != nil {
			return end{}, err
		}
	}
	for {
		event := <-c.Events()
		if event.Err != nil {
			return end{}, event.Err
		}
		if q := event.GetQuestion(); q != nil {
			e.asked = append(e.asked, q.GetReason())
			err := c.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: &tooldv1.Answer{
				QuestionId: q.GetQuestionId(), InputDigest: q.GetInputDigest(), Decision: tooldv1.Decision_DECISION_ALLOW,
			}}})
			if err != nil {
				return end{}, err
			}
		}
		if r := event.GetToolResult(); r.GetToolUseId() == id {
			e.took = time.Since(began)
			return e, e.of(r)
		}
	}
}

// of takes what is compared from a result: what the command printed is read from its output file.
func (e *end) of(r *tooldv1.ToolResult) error {
	e.tier, e.exit = strings.TrimPrefix(r.GetConfinement().GetTier().String(), "SANDBOX_TIER_"), -1
	for _, block := range r.GetContent() {
		e.text += block.GetText() + "\n"
	}
	structured := r.GetStructured().AsMap()
	if code, ok := structured["exit_code"].(float64); ok {
		e.exit = int(code)
	}
	if path, _ := structured["output_path"].(string); path != "" {
		text, err := os.ReadFile(path)
		e.output = string(text)
		return err
	}
	return nil
}
