// Checkpoints, through the daemon: what calls change is kept, listed, and put back.

package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// do runs one call as a turn of its own, and gives its result.
func (c *conversation) do(id, name, input string) *tooldv1.ToolResult {
	c.t.Helper()
	c.use(id, name, input)
	c.endTurn()
	for {
		if result := c.until(id + " ").GetToolResult(); result != nil {
			return result
		}
	}
}

// bash is the input of a command.
func bashInput(command string) string {
	text, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (c *conversation) bash(id, command string) *tooldv1.ToolResult {
	c.t.Helper()
	return c.do(id, "Bash", bashInput(command))
}

// list returns the checkpoints of a session, newest first.
func (h *house) list(request *tooldv1.ListCheckpointsRequest) *tooldv1.ListCheckpointsResponse {
	h.t.Helper()
	response, err := h.sessions().ListCheckpoints(h.t.Context(), request)
	if err != nil {
		h.t.Fatal(err)
	}
	return response
}

// checkpoints returns a line for each: the call, and each file with its change.
func (h *house) checkpoints(session string) (told []string) {
	h.t.Helper()
	for _, c := range h.list(&tooldv1.ListCheckpointsRequest{SessionId: session}).GetCheckpoints() {
		words := []string{c.GetToolUseId()}
		if c.GetRestore() {
			words[0] = "restore"
		}
		for _, f := range c.GetFiles() {
			kind := strings.ToLower(strings.TrimPrefix(f.GetKind().String(), "FILE_CHANGE_KIND_"))
			words = append(words, h.below(f.GetPath())+" "+kind)
		}
		for _, n := range c.GetNotKept() {
			words = append(words, h.below(n.GetPath())+" not kept: "+n.GetReason())
		}
		if c.GetUndone() {
			words = append(words, "undone")
		}
		told = append(told, strings.Join(words, ", "))
	}
	return told
}

// below returns a path relative to the root.
func (h *house) below(path string) string {
	real, err := filepath.EvalSymlinks(h.root)
	if err != nil {
		h.t.Fatal(err)
	}
	if rel, err := filepath.Rel(real, path); err == nil {
		return rel
	}
	return path
}

func (h *house) restore(request *tooldv1.RestoreRequest) *tooldv1.RestoreResponse {
	h.t.Helper()
	response, err := h.sessions().Restore(h.t.Context(), request)
	if err != nil {
		h.t.Fatal(err)
	}
	return response
}

// before is a request to put everything back to before a turn.
func before(session string, turn uint64) *tooldv1.RestoreRequest {
	return &tooldv1.RestoreRequest{SessionId: session, Point: &tooldv1.RestoreRequest_Turn{Turn: turn}}
}

// beforeCall is one to before a call.
func beforeCall(session, id string) *tooldv1.RestoreRequest {
	return &tooldv1.RestoreRequest{SessionId: session, Point: &tooldv1.RestoreRequest_ToolUseId{ToolUseId: id}}
}

// TestListCheckpoints: what was changed is told call by call, and all together.
func TestListCheckpoints(t *testing.T) {
	h := serve(t)
	path := h.file("f", "one\ntwo\n")
	c := h.join("s", free())
	c.do("r", "Read", fmt.Sprintf(`{"file_path":%q}`, path))
	c.do("edit", "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"ONE"}`, path))
	c.do("again", "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"two","new_string":"TWO"}`, path))
	c.bash("nothing", "true > /dev/null; touch f")
	c.bash("shell", "mkdir -p new/deep; echo x > new/deep/file; chmod +x f; ln -s f link")
	c.bash("env", "echo secret > .env")
	want(t, h.checkpoints("s"), []string{
		"env, .env created",
		"shell, f mode, link created, new created, new/deep created, new/deep/file created",
		"again, f changed",
		"edit, f changed",
	})
	list := h.list(&tooldv1.ListCheckpointsRequest{SessionId: "s", Net: true, Paths: []string{"f"}})
	if n := len(list.GetCheckpoints()); n != 3 {
		t.Errorf("%d checkpoints of f, want 3", n)
	}
	want(t, list.GetNet()[0].GetDiff(), "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n-two\n+ONE\n+TWO\n")
	want(t, list.GetCheckpoints()[2].GetDiff(), "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n")
	first := h.list(&tooldv1.ListCheckpointsRequest{SessionId: "s", Limit: 3})
	rest := h.list(&tooldv1.ListCheckpointsRequest{SessionId: "s", Limit: 3, PageToken: first.GetNextPageToken()})
	if len(first.GetCheckpoints()) != 3 || len(rest.GetCheckpoints()) != 1 || rest.GetNextPageToken() != "" {
		t.Errorf("pages of %d and %d, then %q", len(first.GetCheckpoints()), len(rest.GetCheckpoints()), rest.GetNextPageToken())
	}
	if turn := h.list(&tooldv1.ListCheckpointsRequest{SessionId: "s", Turn: proto.Uint64(2)}); len(turn.GetCheckpoints()) != 1 || turn.GetCheckpoints()[0].GetToolUseId() != "edit" {
		t.Errorf("turn 2: %v", turn)
	}
	if err := os.RemoveAll(filepath.Join(h.root, "link")); err != nil {
		t.Fatal(err)
	}
	_, err := h.sessions().ListCheckpoints(t.Context(), &tooldv1.ListCheckpointsRequest{SessionId: "none"})
	refused(t, err, codes.NotFound, "unknown_session")
	_, err = h.sessions().ListCheckpoints(t.Context(), &tooldv1.ListCheckpointsRequest{SessionId: "s", PageToken: "none"})
	refused(t, err, codes.InvalidArgument, "invalid_page_token")
}

// TestAnotherHand: a file that somebody else has changed since is listed, and nothing at all is put back; by force it is,
// and what was there is kept.
func TestAnotherHand(t *testing.T) {
	h := serve(t)
	mine, theirs := h.file("mine", "one\n"), h.file("theirs", "one\n")
	c := h.join("s", free())
	c.bash("both", "echo two > mine; echo two > theirs")
	h.file("theirs", "three\n")
	dry := h.restore(&tooldv1.RestoreRequest{SessionId: "s", Point: &tooldv1.RestoreRequest_Turn{Turn: 1}, DryRun: true})
	want(t, len(dry.GetRestored()), 2)
	want(t, len(dry.GetConflicts()), 1)
	want(t, h.below(dry.GetConflicts()[0]), "theirs")
	want(t, dry.GetConflictReasons()[0].GetReason(), "Another program has changed it since.")
	want(t, dry.GetFiles()[0].GetDiff(), "diff --git a/mine b/mine\n--- a/mine\n+++ b/mine\n@@ -1 +1 @@\n-two\n+one\n")
	_, err := h.sessions().Restore(t.Context(), before("s", 1))
	refused(t, err, codes.FailedPrecondition, "restore_conflict")
	if !strings.Contains(err.Error(), "theirs") {
		t.Errorf("%v, want the file named", err)
	}
	holds(t, mine, "two\n")
	request := before("s", 1)
	request.Paths = []string{"mine"}
	h.restore(request)
	holds(t, mine, "one\n")
	holds(t, theirs, "three\n")
	request = before("s", 1)
	request.Force, request.PlanDigest = true, dry.GetPlanDigest()
	_, err = h.sessions().Restore(t.Context(), request)
	refused(t, err, codes.FailedPrecondition, "plan_changed")
	request.PlanDigest = ""
	forced := h.restore(request)
	holds(t, theirs, "one\n")
	h.restore(beforeCall("s", forced.GetToolUseId()))
	holds(t, theirs, "three\n")
}

func holds(t *testing.T, path, content string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		t.Errorf("%s holds %q (%v), want %q", path, data, err, content)
	}
}

// TestRestoreFollowsNoLink: a link that was put in the place of a file, or of a directory on the way to it, is another
// hand's doing; by force the link is replaced and what it leads to stays.
func TestRestoreFollowsNoLink(t *testing.T) {
	h := serve(t)
	outside := t.TempDir()
	file := filepath.Join(outside, "file")
	if err := os.WriteFile(file, []byte("theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, dir := h.file("file", "one\n"), filepath.Dir(h.file("dir/file", "one\n"))
	c := h.join("s", free())
	c.bash("both", "echo two > file; echo two > dir/file")
	for _, swap := range []func() error{
		func() error { return os.Remove(at) }, func() error { return os.Symlink(file, at) },
		func() error { return os.Rename(dir, dir+"-moved") }, func() error { return os.Symlink(outside, dir) },
	} {
		if err := swap(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := h.sessions().Restore(t.Context(), before("s", 1))
	refused(t, err, codes.FailedPrecondition, "restore_conflict")
	request := before("s", 1)
	request.Force, request.Paths = true, []string{at}
	h.restore(request)
	holds(t, at, "one\n")
	holds(t, file, "theirs\n")
	request.Paths = []string{filepath.Join(h.root, "dir-moved/../dir")}
	if _, err := h.sessions().Restore(t.Context(), request); err == nil {
		t.Error("a file behind a link was put back")
	}
	holds(t, file, "theirs\n")
}

// TestRestoreOfADirectoryBehindALink: a directory comes back in the place of a link that a call has put there, with what
// it held, and the other way round.
func TestRestoreOfADirectoryBehindALink(t *testing.T) {
	h := serve(t)
	for _, name := range []string{"f/x", "f/deep/y", "g/x", "other/x"} {
		h.file(name, "one of "+name+"\n")
	}
	was := picture(t, h.root)
	c := h.join("s", free())
	c.bash("nowhere", "rm -r f; ln -s none f")
	c.bash("elsewhere", "rm -r g; ln -s other g")
	end := picture(t, h.root)
	undone := h.restore(before("s", 1))
	want(t, len(undone.GetNotRestored()), 0)
	want(t, picture(t, h.root), was)
	h.restore(beforeCall("s", undone.GetToolUseId()))
	want(t, picture(t, h.root), end)
}

// TestRestoreIsJudged: a rule that denies an Edit denies putting the file back; one that would ask does not, since who may
// ask for it may answer.
func TestRestoreIsJudged(t *testing.T) {
	h := prepare(t)
	h.start()
	path := h.file("f", "one\n")
	c := h.join("s", &tooldv1.Options{})
	c.use("e", "Bash", bashInput("echo two > f"))
	c.reply(c.until("e asks").GetQuestion(), tooldv1.Decision_DECISION_ALLOW)
	c.endTurn()
	c.until("turn 1")
	rules := func(text string) {
		if err := os.WriteFile(h.settings, []byte(`{"permissions":`+text+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules(`{"deny":["Edit(` + "/" + path + `)"]}`)
	_, err := h.sessions().Restore(t.Context(), before("s", 1))
	refused(t, err, codes.PermissionDenied, "rule_denied")
	holds(t, path, "two\n")
	rules(`{"ask":["Edit"]}`)
	done := h.restore(before("s", 1))
	holds(t, path, "one\n")
	told := story(h.records("s"))
	if at := slices.Index(told, done.GetToolUseId()+" OK"); at < 0 || !slices.Contains(told, done.GetToolUseId()+" started") {
		t.Errorf("the records are %q, want the call that put it back", told)
	}
	c.use("x", "Restore", `{"session":"s","before":"turn 1","paths":[]}`)
	c.endTurn()
	want(t, tell(c.until("x INVALID")), "x INVALID unknown_tool")
}

// TestRestoreOfAClosedSession: it runs in a session of its own, and is known to have been done.
func TestRestoreOfAClosedSession(t *testing.T) {
	h := serve(t)
	path := h.file("f", "one\n")
	c := h.join("s", free())
	c.bash("e", "echo two > f")
	if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: "s"}); err != nil {
		t.Fatal(err)
	}
	dry := before("s", 1)
	dry.DryRun = true
	want(t, len(h.restore(dry).GetRestored()), 1)
	h.file("f", "theirs\n")
	_, err := h.sessions().Restore(t.Context(), before("s", 1))
	refused(t, err, codes.FailedPrecondition, "restore_conflict")
	list, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{IncludeClosed: true})
	if err != nil || len(list.GetSessions()) != 1 {
		t.Errorf("%v (%v); a refusal needs no session", list, err)
	}
	h.file("f", "two\n")
	done := h.restore(before("s", 1))
	holds(t, path, "one\n")
	if done.GetSessionId() == "s" || done.GetSessionId() == "" {
		t.Errorf("it ran in session %q", done.GetSessionId())
	}
	want(t, h.checkpoints("s"), []string{"restore, f changed", "e, f changed, undone"})
	h.restore(beforeCall("s", done.GetToolUseId()))
	holds(t, path, "two\n")
	want(t, h.checkpoints("s"), []string{"restore, f changed", "restore, f changed, undone", "e, f changed"})
	h.stop()
	h.start()
	h.restore(before("s", 1))
	holds(t, path, "one\n")
}

// TestCheckpointSurvivesKill: after kill -9 in the middle of a call what it has changed is put back.
func TestCheckpointSurvivesKill(t *testing.T) {
	h := prepare(t)
	kill := h.spawn()
	path := h.file("f", "one\n")
	c := h.join("s", free())
	c.use("e", "Bash", bashInput("echo two > f; mkdir new; echo x > new/file; echo ready; sleep 1000"))
	for ready := false; !ready; {
		ready = strings.Contains(c.until("").GetProgress().GetOutput().GetText(), "ready")
	}
	kill()
	h.start()
	want(t, h.checkpoints("s"), []string{"e, f changed, new created, new/file created"})
	if text := resultsOf(h.records("s"))["e"].GetContent()[0].GetText(); !strings.Contains(text, "toold undo") {
		t.Errorf("%q, want it to name the way back", text)
	}
	h.restore(before("s", 1))
	holds(t, path, "one\n")
	if _, err := os.Lstat(filepath.Join(h.root, "new")); !os.IsNotExist(err) {
		t.Errorf("the new directory: %v", err)
	}
}

// TestOnlyWhatIsPutThere: of a directory into which something is copied the rest is not kept, unless the same script changes
// that too.
func TestOnlyWhatIsPutThere(t *testing.T) {
	h := serve(t)
	for n := range 2100 {
		h.file(fmt.Sprintf("big/%d", n), "x")
	}
	h.file("small/f", "one\n")
	h.file("x", "two\n")
	was := picture(t, h.root)
	c := h.join("s", free())
	c.bash("into", "cp x big; mv small big; cp x big/7")
	want(t, h.checkpoints("s"), []string{"into, big/7 changed, big/small created, big/small/f created, big/x created, small removed, small/f removed"})
	c.bash("also", "mkdir d; echo one > d/other; cp x d; rm -r d/other; chmod 600 d/x; mv x d; rm -r d")
	want(t, len(h.restore(before("s", 1)).GetNotRestored()), 0)
	want(t, picture(t, h.root), was)
	c.bash("target", "mkdir e; cp x e/x; cp -rT small e")
	h.restore(beforeCall("s", "target"))
	want(t, picture(t, h.root), was)
}

// TestCheckpointsOff: with a limit of 0 bytes nothing is kept, and calls run.
func TestCheckpointsOff(t *testing.T) {
	h := prepare(t)
	h.limit(`"checkpoint_bytes": 0`)
	h.start()
	path := h.file("f", "one\n")
	c := h.join("s", free())
	c.bash("e", "echo two > f")
	holds(t, path, "two\n")
	want(t, h.checkpoints("s"), nil)
	_, err := h.sessions().Restore(t.Context(), before("s", 1))
	refused(t, err, codes.NotFound, "unknown_checkpoint")
	_, err = h.sessions().Restore(t.Context(), &tooldv1.RestoreRequest{SessionId: "s"})
	refused(t, err, codes.InvalidArgument, "invalid_point")
}
