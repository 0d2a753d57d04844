//go:build !no_lsp

package language_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/toold/toold/tools/exec/language"
)

// own is the test's program as a language server for .own files, of some kind: "good", or hostile in its own way.
func own(kind string) language.Server {
	return language.Server{Language: "own", Command: []string{os.Args[0], "serve", kind}, Extensions: []string{".own"}}
}

// A message is as much of one as the server looks at.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Document struct {
			URI     string `json:"uri"`
			Version int    `json:"version"`
			Text    string `json:"text"`
		} `json:"textDocument"`
		Changes []struct {
			Text string `json:"text"`
		} `json:"contentChanges"`
	} `json:"params"`
}

// serve is a language server. A good one says of each line that holds ERR or WARN that it does, knows one definition, and
// changes its mind about nothing.
func serve(kind string) {
	var child *exec.Cmd
	in, out := bufio.NewReader(os.Stdin), os.Stdout
	switch kind {
	case "crashes at once":
		fmt.Fprintln(os.Stderr, "no such flag")
		os.Exit(3)
	case "prints garbage":
		fmt.Println("Welcome to the language server!\n\nHow are you?")
		hang()
	case "endless header":
		for {
			fmt.Fprint(out, "X: y\r\n")
		}
	case "claims a huge message":
		fmt.Fprint(out, "Content-Length: 99999999999999\r\n\r\n{")
		hang()
	case "claims a negative length":
		fmt.Fprint(out, "Content-Length: -5\r\n\r\n{}")
		hang()
	case "sends lists":
		send(out, []any{1, 2})
		hang()
	case "has a child":
		child = exec.Command("/bin/sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			os.Exit(4)
		}
	case "never answers":
		hang()
	case "floods its standard error":
		for range 1000 {
			fmt.Fprint(os.Stderr, strings.Repeat("e", 10_000))
		}
	}
	for {
		m, err := receive(in)
		if err != nil {
			return
		}
		if child != nil && m.Method == "textDocument/definition" { // whose answer is the child's number, as a line
			at := object{"line": child.Process.Pid, "character": 0}
			send(out, object{"id": m.ID, "result": object{"uri": m.Params.Document.URI, "range": object{"start": at, "end": at}}})
			continue
		}
		respond(kind, out, m)
	}
}

// hang waits for the end, whatever is sent.
func hang() { select {} }

func receive(in *bufio.Reader) (m message, err error) {
	length := 0
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return m, err
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return m, err
			}
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

func send(out io.Writer, body any) {
	data, err := json.Marshal(body)
	if err == nil {
		_, err = fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(data), data)
	}
	if err != nil {
		os.Exit(5)
	}
}

type object = map[string]any

func respond(kind string, out io.Writer, m message) {
	position := func(line, character int) object { return object{"line": line, "character": character} }
	switch m.Method {
	case "initialize":
		send(out, object{"id": m.ID, "result": object{"capabilities": object{"definitionProvider": true}}})
		misbehave(kind, out)
	case "textDocument/definition":
		answer(kind, out, m, object{"uri": m.Params.Document.URI, "range": object{"start": position(0, 1), "end": position(0, 2)}})
	case "textDocument/didOpen", "textDocument/didChange":
		text := m.Params.Document.Text
		if len(m.Params.Changes) > 0 {
			text = m.Params.Changes[0].Text
		}
		found := []object{}
		for n, line := range strings.Split(text, "\n") {
			for severity, word := range []string{1: "ERR", 2: "WARN"} {
				if i := strings.Index(line, word); word != "" && i >= 0 {
					found = append(found, object{"severity": severity, "message": "it says " + word, "range": object{"start": position(n, i), "end": position(n, i+1)}})
				}
			}
		}
		if kind != "keeps its findings" {
			publish(out, m, found)
		}
	case "shutdown":
		send(out, object{"id": m.ID, "result": nil})
	}
}

// publish names the version only when it is even: a server may or may not.
func publish(out io.Writer, m message, found []object) {
	params := object{"uri": m.Params.Document.URI, "diagnostics": found}
	if m.Params.Document.Version%2 == 0 {
		params["version"] = m.Params.Document.Version
	}
	send(out, object{"method": "textDocument/publishDiagnostics", "params": params})
}

// misbehave is what a hostile server does as soon as it is known.
func misbehave(kind string, out io.Writer) {
	switch kind {
	case "stops reading":
		hang()
	case "closes its input":
		_ = os.Stdin.Close()
		hang()
	case "floods with findings":
		for i := range 2_000 {
			send(out, object{"method": "textDocument/publishDiagnostics", "params": object{"uri": fmt.Sprintf("file:///no/%d", i), "diagnostics": []object{{"message": strings.Repeat("m", 3000)}}}})
		}
	case "floods with questions":
		for i := range 2_000 {
			send(out, object{"id": i + 1, "method": "workspace/configuration", "params": object{"items": []object{{}, {}}}})
		}
	case "says that it loads":
		send(out, object{"method": "$/progress", "params": object{"token": 1, "value": object{"kind": "begin", "title": "Loading the world"}}})
	}
}

// answer answers a request, or does something else.
func answer(kind string, out io.Writer, m message, result any) {
	switch kind {
	case "answers nothing":
	case "crashes in the middle":
		fmt.Fprint(out, "Content-Length: 100\r\n\r\n{\"id\":")
		os.Exit(6)
	case "promises more than it sends":
		fmt.Fprint(out, "Content-Length: 100\r\n\r\n{}")
	case "answers something else":
		send(out, object{"id": m.ID, "result": "what?"})
	case "answers with a bomb":
		text := `{"id":` + string(m.ID) + `,"result":[` + strings.Repeat("{},", 3_000_000) + `{}]}`
		fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(text), text)
	case "answers twice":
		send(out, object{"id": m.ID, "result": result})
		send(out, object{"id": m.ID, "result": result})
	case "refuses":
		send(out, object{"id": m.ID, "error": object{"code": -1, "message": "not today"}})
	case "puts off":
		send(out, object{"id": m.ID, "error": object{"code": -32801, "message": "later"}})
	case "answers for others":
		send(out, object{"id": 1 << 40, "result": result})
		send(out, object{"id": nil, "result": result})
		send(out, object{"id": m.ID, "result": result})
	default:
		send(out, object{"id": m.ID, "result": result})
	}
}
