// The others, and what they are asked beside toold.

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/toold/toold/bench/ratio"
	"github.com/toold/toold/bench/wire"
)

// installed returns the path of a file that npm has installed, or why it is left out.
func (b *bench) installed(who, file string) (string, error) {
	path := filepath.Join(b.npm, "node_modules", file)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("left out: %s is not installed in %s (npm ci --ignore-scripts)", who, b.npm)
	}
	if _, err := exec.LookPath("node"); err != nil {
		return "", fmt.Errorf("left out: %s needs node", who)
	}
	return path, nil
}

// run starts one of the others, which ends with the bench.
func (b *bench) run(ctx context.Context, name string, args ...string) (*process, error) {
	p, err := start(ctx, []string{"HOME=" + filepath.Dir(b.root), "CODEX_HOME=" + filepath.Dir(b.root)}, name, args...)
	if err == nil {
		b.others = append(b.others, p)
	}
	return p, err
}

// server starts an MCP server and shakes hands.
func (b *bench) server(ctx context.Context, name string, args ...string) (*process, error) {
	p, err := b.run(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	err = p.ask("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": struct{}{}, "clientInfo": map[string]string{"name": "peer", "version": "1"},
	})
	if err == nil {
		_, err = p.await("")
	}
	if err == nil {
		err = p.send(message{Method: "notifications/initialized"})
	}
	return p, err
}

// called is the parameters of MCP's tools/call.
func called(name string, arguments any) any {
	return map[string]any{"name": name, "arguments": arguments}
}

type input = map[string]any

// filesystem compares with npm's filesystem server, through toold's own MCP server and through gRPC.
func (b *bench) filesystem(ctx context.Context) ([]ratio.Comparison, error) {
	index, err := b.installed("@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-filesystem/dist/index.js")
	if err != nil {
		return nil, err
	}
	other, err := b.server(ctx, "node", index, b.root)
	if err != nil {
		return nil, err
	}
	own, err := b.server(ctx, b.toold, "mcp", "--socket", filepath.Join(filepath.Dir(b.root), "toold.sock"), "--root", b.root)
	if err != nil {
		return nil, err
	}
	var list []ratio.Comparison
	for _, c := range []struct {
		name         string
		n, window    int
		tool, theirs string
		ours, input  input
		want         string
	}{
		{"Read 4 KiB", 100, 1, "Read", "read_text_file", input{"file_path": b.path("4k.txt")}, input{"path": b.path("4k.txt")}, "lazy dog"},
		{"Read 4 KiB, 64 in flight", 640, 64, "Read", "read_text_file", input{"file_path": b.path("4k.txt")}, input{"path": b.path("4k.txt")}, "lazy dog"},
		{"Read 64 KiB", 50, 1, "Read", "read_text_file", input{"file_path": b.path("64k.txt")}, input{"path": b.path("64k.txt")}, "lazy dog"},
		{"list 100 files", 50, 1, "LS", "list_directory", input{"path": b.path("list")}, input{"path": b.path("list")}, "file099.txt"},
		{"find 50 of 2,050 files by name", 5, 1, "Glob", "search_files", input{"path": b.path("tree"), "pattern": "**/needle.go"}, input{"path": b.path("tree"), "pattern": "**/needle.go"}, "d49/needle.go"},
	} {
		theirs := other.asking(c.n, c.window, "tools/call", called(c.theirs, c.input), c.want)
		list = append(list,
			ratio.Comparison{Name: c.name + ": toold mcp / npm's filesystem server", Control: theirs, Toold: own.asking(c.n, c.window, "tools/call", called(c.tool, c.ours), c.want)},
			ratio.Comparison{Name: c.name + ": toold, gRPC / npm's filesystem server", Control: theirs, Toold: b.calling(c.n, c.window, c.tool, c.ours, c.want)})
	}
	return list, nil
}

func (b *bench) path(name string) string { return filepath.Join(b.root, name) }

//go:embed npm/driver.mjs
var geminiDriver []byte

// gemini compares with gemini-cli-core's tools, which a small driver of Node runs.
func (b *bench) gemini(ctx context.Context) ([]ratio.Comparison, error) {
	if _, err := b.installed("@google/gemini-cli-core", "@google/gemini-cli-core/package.json"); err != nil {
		return nil, err
	}
	driver := filepath.Join(filepath.Dir(b.root), "driver.mjs")
	if err := os.WriteFile(driver, geminiDriver, 0o600); err != nil {
		return nil, err
	}
	other, err := b.run(ctx, "node", driver, b.root, b.npm)
	if err != nil {
		return nil, err
	}
	grep := "GrepTool"
	if _, err := exec.LookPath("rg"); err == nil {
		grep = "RipGrepTool"
	}
	const name = ": toold, gRPC / gemini-cli-core"
	return []ratio.Comparison{
		{Name: "Bash echo hi" + name, Control: other.asking(20, 1, "ShellTool", input{"command": "echo hi"}, "hi"), Toold: b.calling(20, 1, "Bash", input{"command": "echo hi"}, "hi")},
		{Name: "Read 4 KiB" + name, Control: other.asking(50, 1, "ReadFileTool", input{"file_path": b.path("4k.txt")}, "lazy dog"), Toold: b.calling(50, 1, "Read", input{"file_path": b.path("4k.txt")}, "lazy dog")},
		{Name: "grep a rare word in 2,050 files" + name, Control: other.asking(5, 1, grep, input{"pattern": word, "dir_path": b.path("tree")}, "d49/needle.go"), Toold: b.calling(5, 1, "Grep", input{"pattern": word, "path": b.path("tree")}, "d49/needle.go")},
		{Name: "find 50 of 2,050 files by name" + name, Control: other.asking(5, 1, "GlobTool", input{"pattern": "**/needle.go", "dir_path": b.path("tree")}, "d49/needle.go"), Toold: b.calling(5, 1, "Glob", input{"pattern": "**/needle.go", "path": b.path("tree")}, "d49/needle.go")},
	}, nil
}

// codex compares with Codex's exec-server, which confines nothing unless it is asked to.
func (b *bench) codex(ctx context.Context) ([]ratio.Comparison, error) {
	bin, err := b.installed("@openai/codex", ".bin/codex")
	if err != nil {
		return nil, err
	}
	other, err := b.run(ctx, bin, "exec-server", "--listen", "stdio")
	if err != nil {
		return nil, err
	}
	if err := other.ask("initialize", map[string]string{"clientName": "peer"}); err != nil {
		return nil, err
	}
	if _, err := other.await(""); err != nil {
		return nil, err
	}
	if err := other.send(message{Method: "initialized", Params: struct{}{}}); err != nil {
		return nil, err
	}
	return []ratio.Comparison{{
		Name:    "Bash echo hi: toold, gRPC / Codex's exec-server",
		Control: b.executing(other, 20),
		Toold:   b.calling(20, 1, "Bash", input{"command": "echo hi"}, "hi"),
	}}, nil
}

// executing has Codex's exec-server run n commands, one after the other, until their output is closed.
func (b *bench) executing(p *process, n int) ratio.Work {
	return func(context.Context) (time.Duration, error) {
		start := time.Now()
		for range n {
			err := p.ask("process/start", map[string]any{
				"processId": strconv.Itoa(p.asked), "argv": []string{"bash", "-c", "echo hi"}, "cwd": "file://" + b.root,
				"env": map[string]string{"PATH": os.Getenv("PATH")}, "tty": false, "pipeStdin": false, "arg0": nil,
			})
			if err != nil {
				return 0, err
			}
			output, err := p.await("process/output")
			if err == nil {
				_, err = p.await("process/closed")
			}
			if err != nil {
				return 0, err
			}
			if text, _ := json.Marshal(output.Params); n > 0 {
				if err := holds(string(text), `"chunk":"aGkK"`); err != nil {
					return 0, err
				}
			}
		}
		return time.Since(start) / time.Duration(n), nil
	}
}

// calling makes n calls over gRPC, on a stream that is opened at the first use and stays. The last result must hold want.
func (b *bench) calling(n, window int, tool string, in input, want string) ratio.Work {
	var t *wire.Talk
	return func(ctx context.Context) (time.Duration, error) {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		if t == nil {
			if t, err = wire.StartTalk(ctx, b.daemon, "", b.root); err != nil {
				return 0, err
			}
		}
		took, last, err := t.Calls(n, window, tool, string(text))
		if err != nil {
			return 0, err
		}
		answer := ""
		for _, c := range last.GetContent() {
			answer += c.GetText()
		}
		return took, holds(answer, want)
	}
}
