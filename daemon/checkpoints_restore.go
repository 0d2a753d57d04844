package daemon

// Restore: works out what has to be done and does it by a call of its own, in a turn of its own. What a plan is and how
// files are put back is not known here.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/toold/toold/daemon/checkpoint"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/workspace"
)

// restoring is the tool of one Restore. Nobody else can name it.
type restoring struct {
	tools.Tool
	undoes *checkpoint.Restored
}

// A restore is one Restore under way.
type restore struct {
	daemon  *Daemon
	request *tooldv1.RestoreRequest
	of      string           // the session whose calls are undone
	view    *workspace.View  // looks at what is there now
	first   checkpoint.Past  // the first row that is undone
	plan    *checkpoint.Plan // as it was shown
	roots   []string
}

// Restore puts files back, or says what would be done.
func (x *sessionServer) Restore(ctx context.Context, request *tooldv1.RestoreRequest) (*tooldv1.RestoreResponse, error) {
	d := x.daemon
	s, owned, err := d.restorable(request)
	if err != nil {
		return nil, err
	}
	if owned {
		defer s.close("its restore is done")
	}
	r := &restore{daemon: d, request: request, of: request.GetSessionId(), view: s.lens(nil), roots: s.meta.Roots}
	if r.plan, err = r.work(); err != nil {
		return nil, err
	}
	response := d.restoreOf(r)
	if request.GetDryRun() {
		return response, nil
	}
	if err := r.refusal(); err != nil {
		return nil, err
	}
	if len(r.plan.Steps) == 0 {
		return response, nil
	}
	return r.carryOut(ctx, s, response)
}

// restorable gives the session in which the restoring is done: the one whose calls are undone, or a new one with its roots
// when that is closed; for a dry run a likeness, which is recorded nowhere. owned: it is to be closed behind.
func (d *Daemon) restorable(request *tooldv1.RestoreRequest) (s *session, owned bool, err error) {
	if err := d.takesNew(); err != nil {
		return nil, false, err
	}
	name := request.GetSessionId()
	if s, err := d.bringBack(name); s != nil || err != nil {
		return s, false, err
	}
	look, err := d.look(name)
	if err != nil {
		return nil, false, err
	}
	roots, err := look.roots()
	if err != nil {
		return nil, false, err
	}
	if request.GetDryRun() {
		s, err = d.explaining(&tooldv1.ExplainRequest{Roots: roots})
		return s, false, err
	}
	s, err = d.newSession("", roots, nil, anonymous)
	return s, true, err
}

// work works the plan out, from what is there now.
func (r *restore) work() (*checkpoint.Plan, error) {
	history, err := r.daemon.history(r.of)
	if err != nil {
		return nil, journalRefusal(err)
	}
	paths, err := realPaths(r.request.GetPaths(), r.roots)
	if err != nil {
		return nil, err
	}
	from, err := r.point(history)
	if err != nil {
		return nil, err
	}
	r.first = history[from]
	undone := history[from:]
	// What runs, the restoring itself among it, has left nothing yet.
	undone = slices.DeleteFunc(slices.Clone(undone), func(p checkpoint.Past) bool { return !p.Ended })
	whole := slices.Concat(history[:from], undone)
	plan, err := whole.Plan(from, paths, func(real string) (workspace.Image, error) {
		return r.view.Image(workspace.Camera{Refuse: checkpoint.Credential}, real)
	}, r.daemon.checkpoints.Has)
	if err != nil {
		return nil, refuse(codes.Internal, "checkpoint_failed", "The files cannot be looked at: %v.", err)
	}
	return plan, nil
}

// point finds the first row that is to be undone.
func (r *restore) point(history checkpoint.History) (from int, err error) {
	switch point := r.request.GetPoint().(type) {
	case *tooldv1.RestoreRequest_Turn:
		from = slices.IndexFunc(history, func(p checkpoint.Past) bool { return p.Session == r.of && p.Turn >= point.Turn && p.Turn > 0 })
		if from < 0 {
			return 0, unknownCheckpoint("Session %q has changed no file in turn %d or later that is known. ListCheckpoints gives what there is.", r.of, point.Turn).at("turn")
		}
	case *tooldv1.RestoreRequest_ToolUseId:
		for i, p := range history { // the newest of that id
			if p.ID == point.ToolUseId {
				from = i + 1
			}
		}
		if from == 0 {
			return 0, unknownCheckpoint("Session %q has no call %q that is known to have changed a file. ListCheckpoints gives what there is.", r.of, short(point.ToolUseId)).at("tool_use_id")
		}
		from--
	default:
		return 0, refuse(codes.InvalidArgument, "invalid_point", "A turn or a call has to say to where files are put back.").at("turn")
	}
	return from, nil
}

// realPaths gives absolute paths as they are without links; what is relative is below the first root.
func realPaths(names, roots []string) (reals []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	w, err := workspace.Open(roots[:1], nil)
	if err != nil {
		return nil, refuse(codes.FailedPrecondition, "invalid_root", "The root of the session cannot be used: %v.", err)
	}
	for _, name := range names {
		p, err := w.ResolveEntry(roots[0], name)
		if err != nil {
			return nil, refuse(codes.InvalidArgument, "invalid_path", "%v", err).at("paths")
		}
		reals = append(reals, filepath.Clean(p.Real))
	}
	return reals, nil
}

// refusal says why the plan is not to be carried out; nil: it is.
func (r *restore) refusal() error {
	if digest := r.request.GetPlanDigest(); digest != "" && digest != r.plan.Digest() {
		return refuse(codes.FailedPrecondition, "plan_changed",
			"Something else would be done by now than was shown. Nothing was; ask for another dry run.").at("plan_digest")
	}
	conflicts := r.plan.Conflicts()
	if len(conflicts) == 0 || r.request.GetForce() {
		return nil
	}
	const named = 10
	list := strings.Join(conflicts[:min(len(conflicts), named)], ", ")
	if more := len(conflicts) - named; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return refuse(codes.FailedPrecondition, "restore_conflict",
		"Another hand has changed these since, so nothing was put back: %s. Leave them out with paths, or set force to put them back all the same; what is there now is kept.", clean(list)).at("force")
}

// carryOut runs the call and gives the response as it came out.
func (r *restore) carryOut(ctx context.Context, s *session, response *tooldv1.RestoreResponse) (*tooldv1.RestoreResponse, error) {
	undoes := &checkpoint.Restored{Session: r.of, Paths: r.plan.Paths}
	for _, p := range r.plan.Rows {
		undoes.Calls = append(undoes.Calls, checkpoint.Call{Session: p.Session, Key: p.Key})
	}
	input := checkpoint.Input{Session: r.of, Before: cmp.Or(r.request.GetToolUseId(), fmt.Sprintf("turn %d", r.request.GetTurn())), Force: r.request.GetForce(), Paths: []string{}}
	for _, step := range r.plan.Steps {
		input.Paths = append(input.Paths, workspace.NameOf(step.Real))
	}
	text, err := json.Marshal(input)
	if err != nil {
		return nil, refuse(codes.Internal, "checkpoint_failed", "The restoring cannot be put into words: %v.", err)
	}
	use := parseUse(&tooldv1.ToolUse{Id: newID("restore-"), Name: checkpoint.ToolName, Arguments: &tooldv1.ToolUse_InputJson{InputJson: string(text)}})
	use.own = &restoring{r.daemon.checkpoints.Tool(r.plan, r.work), undoes}
	result, turn, err := s.runOwn(ctx, use)
	if err != nil {
		return nil, err
	}
	response.SessionId, response.ToolUseId, response.Turn = s.name, use.use.ID, turn
	return ended(response, result)
}

// ended puts how the call ended into the response. What is not done is an error.
func ended(response *tooldv1.RestoreResponse, result *tooldv1.ToolResult) (*tooldv1.RestoreResponse, error) {
	code, wrong := codes.OK, result.GetError()
	switch result.GetOutcome() {
	case tooldv1.Outcome_OUTCOME_OK:
	case tooldv1.Outcome_OUTCOME_DENIED:
		code = codes.PermissionDenied
	case tooldv1.Outcome_OUTCOME_INVALID:
		code = codes.FailedPrecondition
	case tooldv1.Outcome_OUTCOME_ERROR:
		code = codes.Internal
		if wrong.GetCode() == "disk_full" {
			code = codes.ResourceExhausted
		}
	default:
		code = codes.Aborted
	}
	if code != codes.OK {
		return nil, refuse(code, wrong.GetCode(), "%s", wrong.GetMessage())
	}
	told := result.GetStructured().GetFields()
	done := map[string]bool{}
	for _, name := range told["restored"].GetListValue().GetValues() {
		done[name.GetStringValue()] = true
	}
	notes := map[string]string{}
	response.Conflicts, response.ConflictReasons = nil, nil
	response.Restored = slices.DeleteFunc(response.Restored, func(name string) bool { return !done[name] })
	response.Files = slices.DeleteFunc(response.Files, func(f *tooldv1.FileChange) bool { return !done[f.GetPath()] })
	for _, reason := range told["notRestored"].GetListValue().GetValues() {
		fields := reason.GetStructValue().GetFields()
		path, why := fields["path"].GetStringValue(), fields["reason"].GetStringValue()
		if notes[path] = why; !done[path] {
			response.NotRestored = append(response.NotRestored, &tooldv1.PathReason{Path: path, Reason: why})
		}
	}
	for _, file := range response.Files {
		file.Note = strings.TrimSpace(file.GetNote() + " " + notes[file.GetPath()])
	}
	return response, nil
}

// runOwn runs a call of the daemon's own as a turn of its own, and gives its result. It goes on when ctx ends.
func (s *session) runOwn(ctx context.Context, r request) (result *tooldv1.ToolResult, turn uint64, err error) {
	st, err := s.runAlone(r, false, func(event *tooldv1.ExecuteResponse) error {
		if found := event.GetToolResult(); found != nil {
			result, turn = found, event.GetTurn()
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if err := st.serve(ctx, nil); err != nil {
		return nil, 0, err
	}
	if result == nil {
		return nil, 0, refuse(codes.Aborted, "session_closed", "The session ended before the files were put back. ListCheckpoints tells whether they were.")
	}
	return result, turn, nil
}

// isOwn reports that a call was made by the daemon itself for somebody who may answer questions: nobody else is asked.
func isOwn(c *pipeline.Call) bool {
	_, own := c.Tool.(*restoring)
	return own
}
