package toold_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/clients/clienttest"
	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// An Agent runs single calls and whole messages of a model, and has its questions answered.
func Example() {
	ctx := context.Background()
	dir, _ := os.Getwd()
	agent, err := toold.Join(ctx, toold.Local, &tooldv1.Attach{Roots: []string{dir}}, toold.Handlers{
		Question: func(_ context.Context, question *tooldv1.Question) *tooldv1.Answer {
			fmt.Printf("%s? %s [y/n]\n", question.GetTitle(), question.GetInputJson())
			decision := tooldv1.Decision_DECISION_DENY
			if line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); strings.TrimSpace(line) == "y" {
				decision = tooldv1.Decision_DECISION_ALLOW
			}
			return &tooldv1.Answer{Decision: decision}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close()

	turn, err := agent.Start(&tooldv1.ToolUse{Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"command": "touch new; ls"}`}})
	if err != nil {
		log.Fatal(err)
	}
	result, err := turn.Result(ctx)
	if err != nil {
		log.Fatal(err) // the daemon cannot be reached: a call that fails or is denied has a result
	}
	fmt.Print(result.GetOutcome(), ": ", result.GetContent()[0].GetText())

	message := `{"type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "LS", "input": {"path": "."}}]}`
	items, err := agent.Run(ctx, message) // what the model's API has answered with
	if err != nil {
		log.Fatal(err)
	}
	appended, _ := json.Marshal(items)
	fmt.Println(string(appended))
	// It prints:
	// Bash(touch new; ls)? {"command": "touch new; ls"} [y/n]
	// OUTCOME_OK: new
	// [{"content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text": ...
}

// A Session has the events themselves, and a question is one of them.
func ExampleOpen() {
	dir, _ := os.Getwd()
	session, err := toold.Open(context.Background(), toold.Local, &tooldv1.Attach{
		Roots: []string{dir}, Capabilities: &tooldv1.Capabilities{Answers: true},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	for _, request := range []*tooldv1.ExecuteRequest{
		{Message: &tooldv1.ExecuteRequest_ToolUse{ToolUse: &tooldv1.ToolUse{
			TurnId: "turn-1", Id: "call-1", Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"command": "touch new; ls"}`},
		}}},
		{Message: &tooldv1.ExecuteRequest_EndTurn{EndTurn: &tooldv1.EndTurn{TurnId: "turn-1"}}},
	} {
		if err := session.Send(request); err != nil {
			log.Fatal(err)
		}
	}
	for event := range session.Events() {
		if event.Err != nil {
			log.Fatal(event.Err)
		}
		if question := event.GetQuestion(); question != nil {
			fmt.Println("asks:", question.GetInputJson())
			answer := &tooldv1.Answer{QuestionId: question.GetQuestionId(), InputDigest: question.GetInputDigest(), Decision: tooldv1.Decision_DECISION_ALLOW}
			if err := session.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Answer{Answer: answer}}); err != nil {
				log.Fatal(err)
			}
		}
		if result := event.GetToolResult(); result != nil {
			fmt.Print(result.GetOutcome(), ": ", result.GetContent()[0].GetText())
		}
		if event.GetTurnEnded() != nil {
			return
		}
	}
	// It prints:
	// asks: {"command": "touch new; ls"}
	// OUTCOME_OK: new
}

// TestExamples runs the examples in a place where no daemon runs yet.
func TestExamples(t *testing.T) {
	for _, variable := range clienttest.Place(t) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	for name, example := range map[string]struct {
		run    func()
		prints string // at first
	}{
		"Agent":   {Example, `Bash(touch new; ls)? {"command": "touch new; ls"} [y/n]` + "\nOUTCOME_OK: new\n" + `[{"content":[{"type":"tool_result","tool_use_id":"toolu_1",`},
		"Session": {ExampleOpen, `asks: {"command": "touch new; ls"}` + "\nOUTCOME_OK: new\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if printed := printedBy(t, example.run, "y\n"); !strings.HasPrefix(printed, example.prints) {
				t.Errorf("it printed\n%s\nnot\n%s", printed, example.prints)
			}
		})
	}
}

// TestLocalSaysWhy: a program learns what it lacks.
func TestLocalSaysWhy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for address, want := range map[string]string{"": "not found in $PATH", "tcp://localhost:1": "use Connect"} {
		t.Setenv("TOOLD_ADDRESS", address)
		_, err := toold.Local(t.Context())
		if toold.Reason(err) != "no_daemon" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want no_daemon and %q", address, err, want)
		}
	}
}

// printedBy calls a function that reads the standard input and writes to the standard output.
func printedBy(t *testing.T, run func(), input string) string {
	t.Helper()
	stdin, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shown, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(typed, input); err != nil {
		t.Fatal(err)
	}
	in, out := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = stdin, stdout
	run() // what it prints fits into the pipe
	os.Stdin, os.Stdout = in, out
	_, _, _ = typed.Close(), stdout.Close(), stdin.Close()
	printed, err := io.ReadAll(shown)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}
