// Restore: works out what has to be done and does it by a call of its own, in a turn of its own.

package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/mirror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
)

// restoring is the tool of one Restore. Clients cannot name it.
type restoring struct {
	tools.Tool
	undoes *checkpoint.Restored
}

// A restore is one Restore under way.
type restore struct {
	daemon   *Daemon
	request  *tooldv1.RestoreRequest
	of       string           // the session whose calls are undone
	session  *session         // that restores; nil: it is still to be made
	judge    *judge           // what the restoring is judged by
	plan     *checkpoint.Plan // as it was shown
	reported []workspace.RestoreStep
}

// Restore puts files back, or reports what would be done.
func (x *sessionServer) Restore(ctx context.Context, request *tooldv1.RestoreRequest) (response *tooldv1.RestoreResponse, err error) {
	r := &restore{daemon: x.daemon, request: request, of: request.GetSessionId()}
	err = awake(func() (_ *session, err error) {
		r.session, r.judge, err = x.daemon.restorable(ctx, request)
		return r.session, err
	}, func(*session) (err error) {
		response, err = r.respond(ctx)
		return err
	})
	return response, err
}

// respond works out what would be done, and does it unless it is only to be reported.
func (r *restore) respond(ctx context.Context) (_ *tooldv1.RestoreResponse, err error) {
	if r.plan, err = r.work(); err != nil {
		return nil, err
	}
	response := r.response()
	if r.request.GetDryRun() {
		return response, nil
	}
	if err := r.refusal(); err != nil {
		return nil, err
	}
	if len(r.plan.Steps) == 0 {
		return response, nil
	}
	if r.session == nil {
		if r.session, err = r.daemon.sessions.newSession(principalOf(ctx), "", r.judge.meta.Roots, nil, anonymous); err != nil {
			return nil, err
		}
		defer func() { _ = r.session.close("its restore is done") }() // it never rests
		r.judge = &r.session.judge
	}
	return r.carryOut(ctx, response)
}

// restorable returns the client's session whose calls are undone, nil when that is closed, and what
// the restoring is judged by.
func (d *Daemon) restorable(ctx context.Context, request sessionRequest) (*session, *judge, error) {
	who := principalOf(ctx)
	if err := d.life.takesNew(); err != nil {
		return nil, nil, err
	}
	if s, err := d.sessions.bringBackFor(who, request.GetSessionId()); err != nil {
		return nil, nil, err
	} else if s != nil {
		return s, &s.judge, nil
	}
	look, err := d.sessions.view(ctx, request)
	if err != nil {
		return nil, nil, err
	}
	roots, err := look.roots()
	if err != nil {
		return nil, nil, err
	}
	j, err := d.imagined(who, roots, nil)
	return nil, j, err
}

// work works the plan out, from what is there now.
func (r *restore) work() (*checkpoint.Plan, error) {
	history, err := r.daemon.history(r.of)
	if err != nil {
		return nil, journalRefusal(err)
	}
	paths, err := realPaths(r.request.GetPaths(), r.judge.meta.Roots)
	if err != nil {
		return nil, err
	}
	from, err := r.point(history)
	if err != nil {
		return nil, err
	}
	// What runs, the restoring itself among it, has left nothing yet.
	undone := slices.DeleteFunc(slices.Clone(history[from:]), func(p checkpoint.Past) bool { return !p.Ended })
	whole := slices.Concat(history[:from], undone)
	view, snapshotter := r.judge.view(nil), r.judge.snapshotter(true)
	plan, err := whole.Plan(from, paths, func(real string) (workspace.Snapshot, error) { return view.Snapshot(snapshotter, real) }, r.daemon.checkpoints.Whole)
	if err != nil {
		return nil, apierror.New(codes.Internal, "checkpoint_failed", "The files cannot be looked at: %v.", err)
	}
	return plan, nil
}

// point finds the first row that is to be undone.
func (r *restore) point(history checkpoint.History) (from int, err error) {
	switch point := r.request.GetPoint().(type) {
	case *tooldv1.RestoreRequest_Turn:
		from = slices.IndexFunc(history, func(p checkpoint.Past) bool { return p.Session == r.of && p.Turn >= point.Turn && p.Turn > 0 })
		first := func(b mirror.RolledBack) bool {
			return b.Turn >= point.Turn && (from < 0 || b.Turn < history[from].Turn)
		}
		if err := r.rolledBack("turn", first); err != nil {
			return 0, err
		}
		if from < 0 {
			return 0, apierror.NotFoundf("unknown_checkpoint", "turn", "Session %q has changed no file in turn %d or later, as far as that is kept. Name an earlier turn.", r.of, point.Turn)
		}
	case *tooldv1.RestoreRequest_ToolUseId:
		elsewhere := uint64(0)      // a turn whose call of that id has changed files; 0: there is none
		for i, p := range history { // the newest of that id
			if p.ID != point.ToolUseId {
				continue
			}
			if r.request.CallTurn == nil || p.Session == r.of && p.Turn == r.request.GetCallTurn() {
				from = i + 1
			} else {
				elsewhere = p.Turn
			}
		}
		meant := func(b mirror.RolledBack) bool { // and newer than what is kept
			return b.ToolUseID == point.ToolUseId && (r.request.CallTurn == nil || b.Turn == r.request.GetCallTurn()) && (from == 0 || b.Turn > history[from-1].Turn)
		}
		if err := r.rolledBack("tool_use_id", meant); err != nil {
			return 0, err
		}
		if from == 0 && elsewhere > 0 {
			return 0, otherTurn("call_turn", point.ToolUseId, elsewhere, r.request.GetCallTurn())
		}
		if from == 0 {
			return 0, apierror.NotFoundf("unknown_checkpoint", "tool_use_id", "Session %q has no call %q that has changed a file, as far as that is kept. Name another call, or a turn.", r.of, convert.Short(point.ToolUseId))
		}
		from--
	default:
		return 0, apierror.Invalidf("invalid_point", "turn", "A turn or a call has to say to where files are put back.")
	}
	return from, nil
}

// rolledBack returns the error of an undo of a call that was rolled back, if meant returns true for one; nil: there is none.
func (r *restore) rolledBack(field string, meant func(mirror.RolledBack) bool) error {
	log, err := r.daemon.journal.Log(r.of)
	if err != nil {
		return journalRefusal(err)
	}
	state, err := log.State(mirror.RolledBackKey)
	if err != nil {
		return journalRefusal(err)
	}
	for _, text := range state {
		var b mirror.RolledBack
		if err := json.Unmarshal(text, &b); err != nil {
			return apierror.New(codes.Internal, "checkpoint_failed", "A call that was rolled back cannot be read: %v.", err)
		}
		if meant(b) {
			return apierror.Preconditionf("rolled_back", field, "What call %q of turn %d had changed is gone already, so there is nothing to undo: %s Name a call or turn that ListCheckpoints lists.", convert.Short(b.ToolUseID), b.Turn, b.Reason)
		}
	}
	return nil
}

// realPaths returns absolute paths as they are without links; what is relative is below the first
// root.
func realPaths(names, roots []string) (reals []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	w, err := workspace.Open(roots[:1], nil)
	if err != nil {
		return nil, apierror.Preconditionf("invalid_root", "", "The root of the session cannot be used: %v.", err)
	}
	for _, name := range names {
		p, err := w.ResolveEntry(roots[0], name)
		if err != nil {
			return nil, apierror.Invalidf("invalid_path", "paths", "%v", err)
		}
		reals = append(reals, filepath.Clean(p.Real))
	}
	return reals, nil
}

// refusal returns why the plan is not to be carried out; nil: it is.
func (r *restore) refusal() error {
	if digest := r.request.GetPlanDigest(); digest != "" && digest != r.plan.Digest() {
		return apierror.Preconditionf("plan_changed", "plan_digest", "Something else would be done by now than was shown. Nothing was; ask for another dry run.")
	}
	conflicts := r.plan.Conflicts()
	if len(conflicts) == 0 || r.request.GetForce() {
		return nil
	}
	return apierror.Preconditionf("restore_conflict", "force", "These are not as the last call left them, so nothing was put back: %s. Leave them out with paths, or set force to put them back all the same; what is there now is kept first.", convert.Clean(someOf(conflicts)))
}

// carryOut runs the call and returns the response as it came out.
func (r *restore) carryOut(ctx context.Context, response *tooldv1.RestoreResponse) (*tooldv1.RestoreResponse, error) {
	undoes := &checkpoint.Restored{Session: r.of, Paths: r.plan.Paths, Wants: r.plan.Wants(), Calls: convert.Each(r.plan.Rows, func(p checkpoint.Past) checkpoint.Call {
		return checkpoint.Call{Session: p.Session, Key: p.Key}
	})}
	text, err := json.Marshal(r.input())
	if err != nil {
		return nil, apierror.New(codes.Internal, "checkpoint_failed", "The restore request cannot be encoded: %v.", err)
	}
	use := parseUse(&tooldv1.ToolUse{Id: newID("restore-"), Name: checkpoint.ToolName, Arguments: &tooldv1.ToolUse_InputJson{InputJson: string(text)}})
	use.own = &restoring{r.daemon.checkpoints.Tool(r.plan, r.work, func(told []workspace.RestoreStep) { r.reported = told }), undoes}
	hold := r.daemon.checkpoints.Hold()
	defer hold.Release()
	for _, step := range r.plan.Steps {
		hold.Need(step.Want.Hash)
	}
	result, turn, err := r.session.intake.runOwn(ctx, use)
	if err != nil {
		return nil, err
	}
	r.session.requests.notifyConflicts(nil)
	response.SessionId, response.ToolUseId, response.Turn = r.session.name, use.use.ID, turn
	return r.ended(response, result)
}

// input is what the call is shown as.
func (r *restore) input() checkpoint.Input {
	input := checkpoint.Input{Session: r.of, Before: cmp.Or(r.request.GetToolUseId(), fmt.Sprintf("turn %d", r.request.GetTurn())), Force: r.request.GetForce(), Paths: []string{}}
	left := convert.Room(checkpoint.ToldBytes)
	for _, step := range r.plan.Steps {
		if name := workspace.NameOf(step.Real); left.Takes(name) {
			input.Paths = append(input.Paths, name)
		}
	}
	input.More = len(r.plan.Steps) - len(input.Paths)
	return input
}

// ended puts how the call ended into the response. What is not done is an error.
func (r *restore) ended(response *tooldv1.RestoreResponse, result *tooldv1.ToolResult) (*tooldv1.RestoreResponse, error) {
	code, known := map[tooldv1.Outcome]codes.Code{
		tooldv1.Outcome_OUTCOME_OK: codes.OK, tooldv1.Outcome_OUTCOME_DENIED: codes.PermissionDenied,
		tooldv1.Outcome_OUTCOME_INVALID: codes.FailedPrecondition, tooldv1.Outcome_OUTCOME_ERROR: codes.Internal,
	}[result.GetOutcome()]
	wrong := result.GetError()
	if !known {
		code = codes.Aborted
	} else if wrong.GetCode() == "disk_full" {
		code = codes.ResourceExhausted
	}
	if code != codes.OK {
		return nil, apierror.New(code, wrong.GetCode(), "%s", wrong.GetMessage())
	}
	done, notes := map[string]bool{}, map[string]string{}
	failed := convert.Room(convert.ShownNames)
	response.Conflicts, response.ConflictReasons, response.MoreConflicts = nil, nil, 0
	for _, told := range r.reported {
		path := workspace.NameOf(told.Real)
		if notes[path] = convert.Visible(told.Note); told.Done {
			done[path] = true
		} else if failed.Takes(path, told.Note) {
			response.NotRestored = append(response.NotRestored, &tooldv1.PathReason{Path: path, Reason: notes[path]})
		} else {
			response.MoreNotRestored++
		}
	}
	response.Restored = slices.DeleteFunc(response.Restored, func(name string) bool { return !done[name] })
	response.Files = slices.DeleteFunc(response.Files, func(f *tooldv1.FileChange) bool { return !done[f.GetPath()] })
	response.MoreRestored = uint32(len(done) - len(response.Restored))
	for _, file := range response.Files {
		file.Note = strings.TrimSpace(file.GetNote() + " " + notes[file.GetPath()])
	}
	return response, nil
}

// runOwn runs a call of the daemon's own as a turn of its own, and returns its result. It goes on
// when ctx ends.
func (i *intake) runOwn(ctx context.Context, r request) (result *tooldv1.ToolResult, turn uint64, err error) {
	st, err := i.runAlone(r, false, eventSender{send: func(message any) error {
		record, is := message.(encoded)
		if !is {
			return nil
		}
		event, err := record.event()
		if found := event.GetToolResult(); found != nil {
			result, turn = found, event.GetTurn()
		}
		return err
	}})
	if err != nil {
		return nil, 0, err
	}
	if err := st.serve(ctx, nil); err != nil {
		return nil, 0, err
	}
	if result == nil {
		return nil, 0, apierror.New(codes.Aborted, "session_closed", "The session ended before the files were put back. ListCheckpoints tells whether they were.")
	}
	return result, turn, nil
}

// isOwn reports whether the daemon made the call itself, for a client that may answer questions: no
// other is asked.
func isOwn(c *pipeline.Call) bool {
	_, own := c.Tool.(*restoring)
	return own
}
