//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cluster/s3test"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// conn returns a connection of alice's.
func (o *operator) conn() *toold.Conn {
	o.t.Helper()
	conn, err := o.cluster.Dial("alice")(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(conn.Close)
	return conn
}

// call returns the text of a call's result, as it is recorded.
func (o *operator) call(id string) string {
	o.t.Helper()
	got, err := o.conn().Tools.GetCall(o.t.Context(), &tooldv1.GetCallRequest{SessionId: "s", ToolUseId: id})
	if err != nil {
		o.t.Fatal(err)
	}
	records := got.GetRecords()
	return records[len(records)-1].GetToolResult().GetContent()[0].GetText()
}

// TestBackup: a cluster in use is backed up, and lost with everything. Another one has its sessions, results and files, runs
// no call again, and refuses to be restored twice. Then the workspace is deleted. Its objects are in a store that speaks S3.
func TestBackup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backup")
	store := s3test.Start(t)
	o := startWith(t, 1, store.URL)
	agent := o.user("workspace:project")
	agent.run("1", "echo run >>runs; echo first result", "first result")
	o.cluster.Part("node", 0).Terminate() // which stores the files
	o.cluster.Part("node", 0).Wait()
	if err := o.cluster.Part("node", 0).Start(); err != nil {
		t.Fatal(err)
	}
	agent.run("2", "cat runs", "run")
	o.run("snapshot", "token:alice", "project", "golden")
	if told := o.run("backup", dir); told != "1 workspaces\n" {
		t.Errorf("backup: %q", told)
	}
	agent.Close()
	o.cluster.Stop()
	if names := store.Names(t); len(names) != 3 || !strings.HasPrefix(names[0], "named/names/") || !strings.HasPrefix(names[1], "named/snapshots/") || !strings.Contains(names[2], "/snapshots/") {
		t.Errorf("the store has %q", names)
	}

	store = s3test.Start(t)
	o = startWith(t, 1, store.URL)
	if told := o.run("restore", dir); told != "1 workspaces\n" {
		t.Errorf("restore: %q", told)
	}
	if text := o.call("1"); !strings.Contains(text, "first result") {
		t.Errorf("the result of before is %q", text)
	}
	o.fromSnapshot("golden")
	agent = o.user() // the session is found by its name
	agent.run("3", "cat runs; echo lines: $(wc -l <runs)", "lines: 1")
	if told := o.run("restore", dir); !strings.Contains(told, `the workspace "project" of "token:alice" is left as it is`) || !strings.HasSuffix(told, "\n0 workspaces\n") {
		t.Errorf("restore again: %q", told)
	}
	o.deleted(agent)
}

// fromSnapshot begins a workspace with a named snapshot, and deletes it.
func (o *operator) fromSnapshot(name string) {
	o.t.Helper()
	unknown := exec.Command(o.program, append([]string{"create", "token:alice", "other", "--snapshot", name + "x"}, o.flags("create")...)...)
	if text, err := unknown.CombinedOutput(); err == nil || !strings.Contains(string(text), `there is no snapshot of that name: "`+name+`x"`) {
		o.t.Errorf("create with an unknown snapshot: %v\n%s", err, text)
	}
	o.run("create", "token:alice", "other", "--snapshot", name)
	options := &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_BYPASS_PERMISSIONS.Enum()}
	agent, err := toold.Join(o.t.Context(), o.cluster.Dial("alice"), &tooldv1.Attach{SessionId: "other", Roots: []string{"workspace:other"}, Options: options}, toold.Handlers{})
	if err != nil {
		o.t.Fatal(err)
	}
	(&user{agent, o.t}).run("1", "cat runs", "run")
	agent.Close()
	o.run("delete", "token:alice", "other")
}

// deleted deletes the workspace, which a client uses.
func (o *operator) deleted(agent *user) {
	o.t.Helper()
	o.run("delete", "token:alice", "project")
	_, err := o.conn().Sessions.GetSession(o.t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	for status.Code(err) == codes.OK { // the owner has not noticed yet
		turn, begun := agent.Start(&tooldv1.ToolUse{Name: "Bash", Arguments: &tooldv1.ToolUse_InputJson{InputJson: `{"command":"true"}`}})
		if begun == nil {
			_, _ = turn.Result(o.t.Context())
		}
		_, err = o.conn().Sessions.GetSession(o.t.Context(), &tooldv1.GetSessionRequest{SessionId: "s"})
	}
	if reason := toold.Reason(err); reason != "workspace_deleted" && reason != "unknown_session" {
		o.t.Errorf("the session of a deleted workspace: %v (%s)", err, reason)
	}
	_, err = toold.Join(o.t.Context(), o.cluster.Dial("alice"), &tooldv1.Attach{SessionId: "new", Roots: []string{"workspace:project"}}, toold.Handlers{})
	if toold.Reason(err) != "workspace_deleted" {
		o.t.Errorf("a new session in a deleted workspace: %v", err)
	}
	if list, err := o.conn().ListSessions(o.t.Context(), true); err != nil || len(list) > 0 {
		o.t.Errorf("the sessions are %v, %v", list, err)
	}
	o.run("delete", "token:alice", "project", "--reuse")
	fresh, err := toold.Join(o.t.Context(), o.cluster.Dial("alice"), &tooldv1.Attach{SessionId: "new", Roots: []string{"workspace:project"}}, toold.Handlers{})
	if err != nil {
		o.t.Fatal(err)
	}
	fresh.Close()
}
