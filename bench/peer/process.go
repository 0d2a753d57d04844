// A process that answers lines of JSON-RPC on its standard output.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/toold/toold/bench/ratio"
)

type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	asked int
}

func start(ctx context.Context, environ []string, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), environ...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	return &process{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, err
}

func (p *process) end() {
	_ = p.in.Close()
	late := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	late.Stop()
}

// A message is a request, its answer, or a notification.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

func (p *process) send(m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	return err
}

// ask sends a request whose answer await returns.
func (p *process) ask(method string, params any) error {
	p.asked++
	return p.send(message{ID: p.asked, Method: method, Params: params})
}

// await returns the next message that is an answer, or a notification of that method. An error in it is an error.
func (p *process) await(method string) (m message, err error) {
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return m, fmt.Errorf("%s: %w", p.cmd.Path, err)
		}
		m = message{}
		if err := json.Unmarshal(line, &m); err != nil {
			return m, fmt.Errorf("%s: %w in %.200s", p.cmd.Path, err, line)
		}
		if m.Error != nil {
			return m, fmt.Errorf("%s: %.500s", p.cmd.Path, m.Error)
		}
		if m.Method == method && (method != "" || m.ID > 0) {
			return m, nil
		}
	}
}

// asking makes n requests, at most window of them unanswered. The last answer must hold want.
func (p *process) asking(n, window int, method string, params any, want string) ratio.Work {
	return func(context.Context) (time.Duration, error) {
		start := time.Now()
		var last message
		for sent, answered := 0, 0; answered < n; answered++ {
			for ; sent < n && sent-answered < window; sent++ {
				if err := p.ask(method, params); err != nil {
					return 0, err
				}
			}
			var err error
			if last, err = p.await(""); err != nil {
				return 0, err
			}
		}
		took := time.Since(start) / time.Duration(n)
		return took, holds(string(last.Result), want)
	}
}

// holds returns an error unless an answer has the text that shows that the work was done.
func holds(answer, want string) error {
	if !strings.Contains(answer, want) || strings.Contains(answer, `"isError":true`) {
		return fmt.Errorf("the answer has no %q: %.500s", want, answer)
	}
	return nil
}
