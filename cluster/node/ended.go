package node

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// What a drain has ended is named: calls that have not come to their end in time, and background tasks, which end with their
// daemon.

// Of what was ended so many things are named, each with at most so many bytes: it goes with each announcement.
const (
	mostEnded  = 20
	titleBytes = 100
)

// Ended returns what the last drain has ended, one thing on each line.
func (n *Node) Ended() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	named := strings.Join(n.ended[:min(len(n.ended), mostEnded)], "\n")
	if more := len(n.ended) - mostEnded; more > 0 {
		named += fmt.Sprintf("\nand %d more", more)
	}
	return named
}

// name notes what a drain has ended.
func (n *Node) name(u *unit, session, what, title string) {
	title, _, _ = strings.Cut(title, "\n")
	if len(title) > titleBytes {
		title = strings.ToValidUTF8(title[:titleBytes], "") + "..."
	}
	u.log.Warn("the drain has ended what ran", zap.String("session", session), zap.String("what", what), zap.String("title", title))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, fmt.Sprintf("%s of %s, session %s: %s: %s", u.w.Name, u.w.Principal, session, what, title))
}

// nameWhatEnds names the background tasks that run, and has the mirror name the calls that are recorded as interrupted. It is
// called before the daemon is asked to end.
func (u *unit) nameWhatEnds() {
	if !u.node.Draining() {
		return // a workspace that is given up for another reason is at rest
	}
	ctx, cancel := context.WithTimeout(u.lost, 5*time.Second)
	defer cancel()
	titles := map[[2]string]string{} // of calls, by session and id
	for s, err := range u.sessions(ctx) {
		if err != nil {
			break // what is not known has no title
		}
		for _, task := range s.GetBackgroundTasks() {
			u.node.name(u, s.GetSessionId(), "background task "+task.GetTaskId(), task.GetCommand())
		}
		if s.GetOpenCalls() == 0 {
			continue
		}
		whole, err := tooldv1.NewSessionServiceClient(u.conn).GetSession(ctx, &tooldv1.GetSessionRequest{SessionId: s.GetSessionId()})
		if err != nil {
			continue
		}
		for _, call := range whole.GetOpenCalls() {
			titles[[2]string{s.GetSessionId(), call.GetToolUseId()}] = cmp.Or(call.GetTitle(), call.GetName())
		}
	}
	u.mirror.watch(func(session, call string) {
		u.node.name(u, session, "call "+call, titles[[2]string{session, call}])
	})
}

// watch has interrupted called with each call that is recorded as interrupted from now on.
func (m *mirrorServer) watch(interrupted func(session, call string)) {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.interrupted = interrupted
}

// look calls interrupted. The caller holds turn.
func (m *mirrorServer) look(changes []*tooldv1.JournalChange) {
	if m.interrupted == nil {
		return
	}
	for _, change := range changes {
		for _, entry := range change.GetEntries() {
			var event tooldv1.ExecuteResponse
			if proto.Unmarshal(entry.GetBody(), &event) != nil {
				continue
			}
			if r := event.GetToolResult(); r.GetOutcome() == tooldv1.Outcome_OUTCOME_INTERRUPTED {
				m.interrupted(change.GetSessionId(), r.GetToolUseId())
			}
		}
	}
}
