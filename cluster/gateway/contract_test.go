package gateway

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestRoots(t *testing.T) {
	for root, want := range map[string]string{
		"workspace:w":         "w /workspace",
		"workspace:w/":        "w /workspace",
		"workspace:a.b*c/x/y": "a.b*c /workspace/x/y",
		"workspace:w//x/./y":  "w /workspace/x/y",
		"workspace:ü/..x":     "ü /workspace/..x",
		"workspace:":          "",
		"workspace:/x":        "",
		"workspace:../x":      "",
		"workspace:.":         "",
		"workspace:..":        "",
		"workspace:..x/y":     "..x /workspace/y",
		"workspace:w/..":      "",
		"workspace:w/a/../b":  "",
		"workspace:w\x00":     "",
		"/workspace/x":        "",
		"w":                   "",
	} {
		got := ""
		g := &Gateway{mount: mountPoint}
		attach := &tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{Roots: []string{root}, Client: &tooldv1.ClientInfo{Name: "c"}}}}
		data, err := proto.Marshal(attach)
		if err != nil {
			t.Fatal(err)
		}
		about, err := g.subjectOf(requests[tooldv1.ToolService_Execute_FullMethodName], data)
		if err == nil {
			sent := &tooldv1.ExecuteRequest{}
			if err := proto.Unmarshal(about.frame.Bytes(), sent); err != nil || sent.GetAttach().GetClient().GetName() != "c" {
				t.Fatalf("%v, %v", sent, err)
			}
			got = about.workspace + " " + sent.GetAttach().GetRoots()[0]
			if back := g.rootFor(about.workspace, sent.GetAttach().GetRoots()[0]); !strings.HasPrefix(back, "workspace:"+about.workspace) {
				t.Errorf("%q comes back as %q", root, back)
			}
		}
		if got != want {
			t.Errorf("%q is %q, %v; want %q", root, got, err, want)
		}
	}
}

// FuzzSubject: whatever the first message is, what a node gets has roots inside of the workspace only.
func FuzzSubject(f *testing.F) {
	for _, message := range []proto.Message{
		&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Attach{Attach: &tooldv1.Attach{SessionId: "s", Roots: []string{"workspace:w/x"}}}},
		&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_Ack{Ack: &tooldv1.Ack{Seq: 1}}},
		&tooldv1.RunToolRequest{Name: "Read", Roots: []string{"workspace:w", "workspace:w/../.."}},
		&tooldv1.GetCallRequest{SessionId: "s"},
	} {
		data, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(true, data)
		f.Add(false, data)
	}
	f.Fuzz(func(t *testing.T, execute bool, data []byte) {
		g := &Gateway{mount: mountPoint}
		name := tooldv1.ToolService_RunTool_FullMethodName
		if execute {
			name = tooldv1.ToolService_Execute_FullMethodName
		}
		about, err := g.subjectOf(requests[name], data)
		if err != nil {
			return
		}
		message := requests[name].New().Interface()
		if err := proto.Unmarshal(about.frame.Bytes(), message); err != nil {
			t.Fatal(err)
		}
		roots := []string(nil)
		switch m := message.(type) {
		case *tooldv1.ExecuteRequest:
			roots = m.GetAttach().GetRoots()
		case *tooldv1.RunToolRequest:
			roots = m.GetRoots()
		}
		for _, root := range roots {
			if root != mountPoint && !strings.HasPrefix(root, mountPoint+"/") || strings.Contains(root+"/", "/../") {
				t.Errorf("the root %q leads out of the workspace", root)
			}
		}
		if about.session == "" && about.workspace == "" {
			t.Error("the request is about nothing")
		}
	})
}
