package dialect

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// The items of the tools that OpenAI's Responses API defines, and the tools that they are calls of. The reply has the type with
// "_output" behind it.
const (
	patchCall = "apply_patch_call"
	shellCall = "shell_call"
	patchTool = "ApplyPatch"
	shellTool = "Shell"
	// freePatch is the name of the tool with free text for input that models are trained to use for patches.
	freePatch = "apply_patch"
)

// isOwn reports whether an item is one of a tool that the API defines.
func isOwn(itemType string) bool { return itemType == patchCall || itemType == shellCall }

// OwnItem returns the type of an item if it is one of a tool that the API defines, as [Use.Item] has it; empty otherwise.
func OwnItem(itemType string) string {
	if isOwn(itemType) {
		return itemType
	}
	return ""
}

// readOwn reads such an item. One that is still incomplete has no name but that of its tool.
func readOwn(text json.RawMessage) (part, error) {
	var item struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		Status    string          `json:"status"`
		Caller    json.RawMessage `json:"caller"`
		Operation operation       `json:"operation"`
		Action    struct {
			Commands  json.RawMessage `json:"commands"`
			Timeout   *int64          `json:"timeout_ms,omitempty"`
			MaxOutput *int64          `json:"max_output_length,omitempty"`
		} `json:"action"`
	}
	if err := json.Unmarshal(text, &item); err != nil {
		return part{}, err
	}
	u := Use{ID: item.CallID, Name: patchTool, Item: item.Type, Raw: text, Caller: item.Caller}
	input := any(patchInput{item.Operation.patch()})
	if item.Type == shellCall {
		u.Name, input = shellTool, item.Action
	}
	canonical, err := Marshal(input)
	u.Input = string(canonical)
	if item.Status == "incomplete" {
		return part{heading: heading{format: Responses}, cut: []string{u.Name}}, err
	}
	return partOf(Responses, u), err
}

// patchInput is the input of ApplyPatch.
type patchInput struct {
	Patch string `json:"patch"`
}

// An operation is what an apply_patch_call does to its one file.
type operation struct {
	Type   string `json:"type"`
	Path   string `json:"path"`
	Diff   string `json:"diff"`
	MoveTo string `json:"move_to"`
}

// patch returns the operation as a whole patch.
func (o operation) patch() string {
	lines := []string{"*** Begin Patch", map[string]string{
		"create_file": "*** Add File: ", "update_file": "*** Update File: ", "delete_file": "*** Delete File: ",
	}[o.Type] + inLine(o.Path)}
	if o.Type == "update_file" && o.MoveTo != "" {
		lines = append(lines, "*** Move to: "+inLine(o.MoveTo))
	}
	if o.Type != "delete_file" {
		for line := range strings.SplitSeq(strings.TrimSuffix(o.Diff, "\n"), "\n") {
			if endsDiff(line) {
				break
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, "*** End Patch"), "\n")
}

// endsDiff reports whether a line ends the part of a patch that is about one file.
func endsDiff(line string) bool {
	for _, mark := range []string{"*** End Patch", "*** Add File:", "*** Update File:", "*** Delete File:"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// inLine returns a path in the form that fits into a line, which all tools take.
func inLine(path string) string {
	if strings.ContainsAny(path, "\r\n") {
		return "base64:" + base64.StdEncoding.EncodeToString([]byte(path))
	}
	return path
}

// canonical returns a call of apply_patch, with free text for input, as the call of ApplyPatch that it stands for, and any other as
// it is.
func canonical(u Use) Use {
	if !u.Custom || u.Name != freePatch {
		return u
	}
	input, err := Marshal(patchInput{arguments(json.RawMessage(u.Input))})
	if err == nil {
		u.Native, u.Name, u.Input = u.Name, patchTool, string(input)
	}
	return u
}

type (
	patchOutput struct {
		Type   string          `json:"type"`
		CallID string          `json:"call_id"`
		Status string          `json:"status"`
		Output string          `json:"output"`
		Caller json.RawMessage `json:"caller,omitempty"`
	}
	shellOutput struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		MaxOutput *int64          `json:"max_output_length,omitempty"`
		Output    []commandOutput `json:"output"`
		Caller    json.RawMessage `json:"caller,omitempty"`
	}
	commandOutput struct {
		Stdout  string  `json:"stdout"`
		Stderr  string  `json:"stderr"`
		Outcome outcome `json:"outcome"`
	}
	outcome struct {
		Type     string `json:"type"`
		ExitCode *int   `json:"exit_code,omitempty"`
	}
)

// answerOwn returns the reply to an item of a tool that the API defines. text is the result for a model.
func answerOwn(u Use, o Output, text string) any {
	if u.Item == patchCall {
		status := "completed"
		if o.IsError {
			status = "failed"
		}
		return patchOutput{patchCall + "_output", u.ID, status, text, u.Caller}
	}
	var ran struct {
		MaxOutput *int64 `json:"max_output_length"`
		Commands  []struct {
			Stdout   string `json:"stdout"`
			Stderr   string `json:"stderr"`
			ExitCode int    `json:"exit_code"`
			TimedOut bool   `json:"timed_out"`
		} `json:"commands"`
	}
	if o.Structured != nil {
		if text, err := o.Structured(); err == nil {
			_ = json.Unmarshal(text, &ran) // of a call that was refused there is nothing
		}
	}
	reply := shellOutput{Type: shellCall + "_output", CallID: u.ID, MaxOutput: ran.MaxOutput, Output: []commandOutput{}, Caller: u.Caller}
	for _, c := range ran.Commands {
		ended := outcome{Type: "exit", ExitCode: &c.ExitCode}
		if c.TimedOut {
			ended = outcome{Type: "timeout"}
		}
		reply.Output = append(reply.Output, commandOutput{c.Stdout, c.Stderr, ended})
	}
	if len(reply.Output) == 0 {
		code := 126
		if o.Stopped {
			code = 130
		}
		reply.Output = append(reply.Output, commandOutput{Stderr: text, Outcome: outcome{Type: "exit", ExitCode: &code}})
	}
	return reply
}
