package main

import (
	"testing"

	"github.com/toold/toold/tools/tooltest"
)

// A tool in the list without a case here fails, so none gets by without the checks.
func TestTools(t *testing.T) {
	text := map[string]string{"a.txt": "one\ntwo\nthree\n"}
	cases := map[string][]tooltest.Case{
		"Read": {
			{Name: "whole", Input: `{"file_path":"$ROOT/a.txt"}`, Files: text},
			{Name: "range", Input: `{"file_path":"$ROOT/a.txt","offset":2.0,"limit":1}`, Files: text},
			{Name: "empty", Input: `{"file_path":"$ROOT/e.txt"}`, Files: map[string]string{"e.txt": ""}},
		},
		"Write": {
			{Name: "new", Input: `{"file_path":"$ROOT/d/new.txt","content":"x"}`},
			{Name: "over", Input: `{"file_path":"$ROOT/a.txt","content":"x"}`, Files: text, Seen: []string{"a.txt"}},
		},
		"Edit": {{Name: "one", Input: `{"file_path":"$ROOT/a.txt","old_string":"two","new_string":"2"}`, Files: text, Seen: []string{"a.txt"}}},
		"MultiEdit": {{
			Name: "two", Files: text, Seen: []string{"a.txt"},
			Input: `{"file_path":"$ROOT/a.txt","edits":[{"old_string":"two","new_string":"2"},{"old_string":"2","new_string":"II"}]}`,
		}},
		"Glob": {
			{Name: "some", Input: `{"pattern":"**/*.txt"}`, Files: text},
			{Name: "none", Input: `{"pattern":"*.go","path":"$ROOT"}`, Files: text},
		},
		"Grep": {
			{Name: "files", Input: `{"pattern":"two"}`, Files: text},
			{Name: "content", Input: `{"pattern":"t.","output_mode":"content","-n":true,"-C":1}`, Files: text},
			{Name: "none", Input: `{"pattern":"four"}`, Files: text},
		},
		"LS": {{Name: "one level", Input: `{"path":"$ROOT","ignore":["b*"]}`, Files: text}},
		"Bash": {
			{Name: "read-only", Input: `{"command":"cat a.txt"}`, Files: text},
			{Name: "silent", Input: `{"command":"touch b","timeout":5000,"description":"Makes a file."}`},
		},
		"BashOutput": {{Name: "running", Task: "echo one; sleep 600", Input: `{"bash_id":"$TASK","filter":"o.e"}`}},
		"KillShell":  {{Name: "running", Task: "sleep 600", Input: `{"shell_id":"$TASK"}`}},
		"TodoWrite": {
			{Name: "list", Input: `{"todos":[{"content":"Look","status":"in_progress","activeForm":"Looking"}]}`},
			{Name: "empty", Input: `{"todos":[]}`},
		},
	}
	for _, tool := range toolset() {
		name := tool.Spec().Name
		t.Run(name, func(t *testing.T) {
			listed, ok := cases[name]
			if !ok {
				t.Fatalf("no case for %s", name)
			}
			tooltest.Check(t, tool, listed...)
		})
	}
}
