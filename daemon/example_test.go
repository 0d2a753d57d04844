package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// shoutInput is what a call of the tool Shout is given.
type shoutInput struct {
	Text string `json:"text" jsonschema:"what is to be said louder"`
}

// newShout makes a tool of a typed input, of what its calls will touch, which is nothing, and of what they do.
func newShout() tools.Tool {
	return tools.New(tools.Spec{Name: "Shout", Description: "Gives a text back in capitals.", ReadOnly: true}, tools.Funcs[shoutInput]{
		Effects: func(shoutInput) tools.Effects { return tools.Effects{} },
		Run: func(_ context.Context, _ *tools.Env, in shoutInput) (tools.Result, error) {
			return tools.Text(strings.ToUpper(in.Text)), nil
		},
	})
}

// A program with a daemon of its own and one tool, and a client of it. A program whose tools start processes begins its
// main with sandbox.WatcherMain; examples/filesearch is a whole one.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "toold") // a socket's path must be short
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "run", "toold.sock")

	listener, err := access.Listen(socket) // before New, so that two daemons never open one state
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := daemon.New(daemon.Config{Tools: []tools.Tool{newShout()}, StateDir: filepath.Join(dir, "state"), Root: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- d.Serve(listener) }()

	if err := shout(socket); err != nil {
		fmt.Println(err)
	}
	d.Drain()
	fmt.Println("ended:", <-served)
	// Output:
	// Shout begins
	// HELLO
	// ended: <nil>
}

// shout makes one call with the generated client.
func shout(socket string) error {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := tooldv1.NewToolServiceClient(conn).RunTool(context.Background(), &tooldv1.RunToolRequest{
		Name: "Shout", Arguments: &tooldv1.RunToolRequest_InputJson{InputJson: `{"text": "hello"}`},
	})
	for err == nil {
		var response *tooldv1.RunToolResponse
		if response, err = stream.Recv(); err != nil {
			break
		}
		switch event := response.GetEvent().GetEvent().(type) {
		case *tooldv1.ExecuteResponse_Started:
			fmt.Println("Shout begins")
		case *tooldv1.ExecuteResponse_ToolResult:
			fmt.Println(event.ToolResult.GetContent()[0].GetText())
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
