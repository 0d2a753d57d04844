//go:build !no_mcp

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What comes in on standard input that no client should send.

const mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"hand","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// mcpPipe starts a second server in the workspace of the first, to be written to by hand. output returns its next line.
func mcpPipe(t *testing.T, p *mcpPeer) (input *os.File, output func() map[string]any) {
	t.Helper()
	in, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := self(t, context.Background(), p.environ, p.root, "mcp", "--mode", "bypassPermissions")
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	lines := bufio.NewReader(out)
	t.Cleanup(func() {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	output = func() map[string]any {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		var message map[string]any
		if err != nil || json.Unmarshal(line, &message) != nil || message["jsonrpc"] != "2.0" {
			t.Fatalf("the server wrote %.200q, %v", line, err)
		}
		return message
	}
	if _, err := input.WriteString(mcpHello); err != nil {
		t.Fatal(err)
	}
	output()
	return input, output
}

// TestMCPHostileInput: what is not a message is answered, and what follows it is served.
func TestMCPHostileInput(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{})
	input, output := mcpPipe(t, p)
	call := `{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"Bash","arguments":{"command":"echo served"}}}` + "\n"
	for name, c := range map[string]struct {
		text string
		code float64
	}{
		"garbage":       {"garbage\n", -32700},
		"half a line":   {`{"jsonrpc":"2.0","id":1,` + "\n", -32700},
		"not UTF-8":     {"\xff\xfe\x00\n", -32700},
		"other version": {`{"jsonrpc":"1.0","id":7,"method":"ping"}` + "\n", -32600},
		"empty batch":   {"[]\n", -32600},
		"a number":      {"7\n", -32600},
		"huge":          {strings.Repeat("x", 16<<20+1) + "\n", -32700},
		"deep":          {strings.Repeat("[", 100_000) + "\n", -32700},
		"no method":     {`{"jsonrpc":"2.0","id":8,"method":"no/such"}` + "\n", -32601},
		"no params":     {`{"jsonrpc":"2.0","id":9,"method":"tools/call"}` + "\n", -32600},
		"wrong params":  {`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":[1]}` + "\n", -32602},
		"new protocol":  {`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"LS","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}` + "\n", -32602},
		"wrong meta":    {`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"LS","_meta":1,"arguments":7}}` + "\n", 0},
	} {
		if _, err := input.WriteString(c.text); err != nil {
			t.Fatal(err)
		}
		answer := output()
		fault, _ := answer["error"].(map[string]any)
		if code, _ := fault["code"].(float64); code != c.code {
			t.Errorf("%s was answered with %v, want code %v", name, answer, c.code)
		}
		if _, err := input.WriteString(call); err != nil {
			t.Fatal(err)
		}
		if answer := output(); answer["id"] != "last" || answer["result"] == nil {
			t.Errorf("after %s a call was answered with %v", name, answer)
		}
	}
}

// TestMCPPipedIn: requests that are piped in are answered before the end of input ends the server.
func TestMCPPipedIn(t *testing.T) {
	t.Parallel()
	environ, ws := home(t)
	cmd := self(t, t.Context(), environ, ws, "mcp")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"LS"}}` + "\n" + mcpHello + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n\n" +
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"LS","arguments":{"path":"."}}}` + "\n" + `{"jsonrpc":"2.0","id":4,"met`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{`"id":0,"error"`, `"id":1,"result"`, `"id":2,"result"`, `"id":3,"result"`} {
		if !bytes.Contains(out, []byte(answer)) {
			t.Errorf("no answer has %s:\n%.2000s", answer, out)
		}
	}
}

// TestMCPCancelledUnanswered: a call that the client has cancelled has no answer, whether it runs or not.
func TestMCPCancelledUnanswered(t *testing.T) {
	t.Parallel()
	p := meetMCP(t, peerOptions{})
	input, output := mcpPipe(t, p)
	const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Bash","arguments":{"command":"%s"}}}` + "\n"
	const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}` + "\n"
	for _, line := range []string{
		fmt.Sprintf(call, 5, "sleep 600"), fmt.Sprintf(call, 6, "sleep 600"), fmt.Sprintf(cancelled, 6), fmt.Sprintf(cancelled, 5),
		fmt.Sprintf(cancelled, 7), fmt.Sprintf(call, 7, "echo served"),
	} {
		if _, err := input.WriteString(line); err != nil {
			t.Fatal(err)
		}
	}
	if answer := output(); answer["id"] != 7.0 || answer["result"] == nil {
		t.Errorf("the first answer is %v", answer)
	}
}

// TestMCPOneSocket: input and output may be one socket, as sshd has it, and be full.
func TestMCPOneSocket(t *testing.T) {
	t.Parallel()
	environ, ws := home(t)
	put(t, filepath.Join(ws, "a.txt"), strings.Repeat("the quick brown fox\n", 2000))
	syscall.ForkLock.RLock()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	cmd := self(t, t.Context(), environ, ws, "mcp")
	cmd.Stdin, cmd.Stdout = theirs, theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	const calls = 100
	input := mcpHello
	for i := range calls {
		input += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":%q}}}`+"\n", i+2, filepath.Join(ws, "a.txt"))
	}
	if _, err := ours.WriteString(input); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(ours)
	for n := 0; n < calls; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v after %d of %d answers", err, n, calls)
		}
		if bytes.Contains(line, []byte(`{"toold/outcome":"ok"}`)) {
			n++
		}
	}
	_ = ours.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
