// After a restart: sessions are there again, turns are ended, and every call that was open has its
// one result. Nothing runs a second time.

package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	"github.com/toold/toold/daemon/quota"
	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/tools/fs/workspace"
)

// notRestored is a session that is not closed but could not be brought back.
type notRestored struct {
	info journal.Info
	why  error
}

// lostRetry is how often sessions are tried again that a full disk keeps from coming back. Each try
// is a transaction.
const lostRetry = time.Second

// restore brings back every session that is not closed. One that cannot be brought back is reported
// and left in the journal; the others serve.
func (x *sessionSet) restore() error {
	infos, err := x.d.journal.Logs()
	if err != nil {
		return err
	}
	if x.d.Inherited != nil {
		x.inherit(x.d.Inherited.Sessions)
	}
	for _, info := range infos {
		if x.resting[info.Name] != nil {
			continue
		}
		if unborn, err := x.removeUnborn(info); err != nil {
			return err
		} else if !unborn && info.Sealed.IsZero() {
			x.notRestored[info.Name] = notRestored{info: info}
			if _, err := x.bringBack(info.Name); err != nil {
				x.d.Log.Warn("a session could not be brought back", zap.String("session", info.Name), zap.Error(err))
			}
		}
	}
	return nil
}

// removeUnborn removes a session that a daemon had not finished making when it died: it is empty,
// and no client knows of it.
func (x *sessionSet) removeUnborn(info journal.Info) (unborn bool, err error) {
	if info.Last > 0 {
		return false, nil
	}
	log, err := x.d.journal.Log(info.Name)
	if err != nil {
		return false, err
	}
	if state, err := log.State(""); err != nil || len(state) > 0 { // its records are lost, and not the rest
		return false, err
	}
	return true, x.d.journal.Remove(info.Name)
}

// allMissing returns the sessions that could not be brought back yet.
func (x *sessionSet) allMissing() []notRestored {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.notRestored))
}

// missing returns the session of that name if it is not closed and could not be brought back.
func (x *sessionSet) missing(name string) (notRestored, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	found, missing := x.notRestored[name]
	return found, missing
}

// bringBack finds an open session, and restores one that could not be restored before; nil: none of
// that name is open.
func (x *sessionSet) bringBack(name string) (*session, error) {
	if s, ok := x.find(name); ok {
		return s, nil
	}
	s, err := x.retrieve(name, forClient)
	if s != nil && s.meta.Anonymous {
		return nil, s.close("the daemon was restarted") // which may wait for hooks
	}
	return s, err
}

// bringBackFor does so for a principal; nil: none of that name is open, or it belongs to another.
func (x *sessionSet) bringBackFor(who access.Principal, name string) (*session, error) {
	if _, open := x.find(name); !open && x.has(name) && x.keptMeta(name).owner() != who {
		return nil, nil
	}
	s, err := x.bringBack(name)
	if s != nil && s.meta.owner() != who {
		return nil, nil
	}
	return s, err
}

// has reports whether a session of that name is open, in memory or not.
func (x *sessionSet) has(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, missing := x.notRestored[name]
	return missing || x.open[name] != nil || x.resting[name] != nil
}

// retrieve restores the session of that name if it is lost or at rest.
func (x *sessionSet) retrieve(name string, why reason) (*session, error) {
	x.making.Lock()
	defer x.making.Unlock()
	if s, ok := x.find(name); ok { // another was faster
		return s, nil
	}
	missing, found := x.missing(name)
	r := x.atRest(name)
	if !found && r == nil {
		return nil, nil
	}
	if err := x.d.life.takesNew(); err != nil {
		return nil, err
	}
	if r != nil {
		return x.wakeLocked(r, why)
	}
	s, err := x.restoreSession(missing.info)
	x.mu.Lock()
	if err != nil {
		x.notRestored[name] = notRestored{missing.info, err}
	} else {
		delete(x.notRestored, name)
		x.open[name] = s
	}
	x.mu.Unlock()
	if refused, is := errors.AsType[*apierror.Error](err); is {
		return nil, refused
	} else if err != nil {
		return nil, journalRefusal(err)
	}
	if !s.meta.Anonymous {
		s.startHooks(hook.Input{Event: hook.SessionStart, Source: "resume"}, "resume")
	}
	return s, nil
}

// bringBackAll tries to restore the sessions that a full disk has kept from it, and reports whether
// there are any left.
func (x *sessionSet) bringBackAll() (left bool) {
	x.mu.Lock()
	var names []string
	for name, missing := range x.notRestored {
		if errors.Is(missing.why, journal.ErrFull) {
			names = append(names, name)
		}
	}
	x.mu.Unlock()
	for _, name := range names {
		_, err := x.bringBack(name)
		left = left || err != nil
	}
	return left
}

func (x *sessionSet) restoreSession(info journal.Info) (*session, error) {
	log, err := x.d.journal.Log(info.Name)
	if err != nil {
		return nil, err
	}
	kept, err := log.State("")
	if err != nil {
		return nil, err
	}
	rows, err := callRows(kept)
	if err != nil {
		return nil, err
	}
	outputs, err := x.outputs(info.Name, x.keptMeta(info.Name).owner())
	if err != nil {
		return nil, err
	}
	places, err := workspace.Open(nil, x.d.locks)
	if err != nil {
		return nil, err
	}
	w := crashedSession{name: info.Name, log: log, rows: rows, state: kept, outputs: outputs, files: places.View(workspace.Grant{}, workspace.NewReadState())}
	if err := w.rebuild(); err != nil {
		return nil, err
	}
	if err := w.finish(); err != nil {
		return nil, err
	}
	s, err := x.revive(log, kept, w)
	if err != nil {
		return nil, err
	}
	s.created = info.Created
	s.update(func(its *state) { s.account.Restore(quota.Options, optionBytes(its.options, nil)) })
	return s, nil
}

// revive puts a session together from what the journal keeps, whose calls have all ended.
func (x *sessionSet) revive(log *journal.Log, kept map[string][]byte, w crashedSession) (*session, error) {
	var about meta
	if err := json.Unmarshal(kept[keyMeta], &about); err != nil {
		return nil, fmt.Errorf("its description: %w", err)
	}
	places, err := openPlaces(about.Roots, x.d.locks)
	if err != nil {
		return nil, err
	}
	s, err := x.assemble(w.name, about, log, places)
	if err != nil {
		return nil, err
	}
	s.update(func(its *state) {
		its.ledger.calls = w.rows
		for _, key := range w.inOrder() {
			its.ledger.remember(key, w.rows[key])
			its.ledger.lastTurn = max(its.ledger.lastTurn, w.rows[key].Turn)
		}
		err = s.recall(its, kept)
	})
	if err == nil {
		err = s.completeCheckpoints(kept)
	}
	if err != nil {
		s.abandon(err)
		return nil, err
	}
	return s, nil
}

// recall takes over the state that the journal kept.
func (s *session) recall(its *state, kept map[string][]byte) error {
	var wrong []error
	read := func(key string, into any) {
		if text, ok := kept[key]; ok {
			if err := json.Unmarshal(text, into); err != nil {
				wrong = append(wrong, fmt.Errorf("state %s: %w", key, err))
			}
		}
	}
	var lastTurn uint64
	var active []string
	read(keyDir, &its.shell.dir)
	var exports exports
	read(keyExports, &exports)
	its.shell.vars = its.shell.vars.withExports(exports)
	read(keyTodos, &its.shell.todos)
	read(keyTell, &its.shell.tell)
	read(keyRules, &its.questions.remembered)
	read(keyPorts, &its.questions.ports)
	read(keyAcked, &its.ledger.acked)
	read(keyActive, &active)
	its.toolset.dynamic = &dynamicTools{active: active}
	read(keyTurn, &lastTurn)
	its.ledger.lastTurn = max(its.ledger.lastTurn, lastTurn)
	if err := proto.Unmarshal(kept[keyOptions], its.options); err != nil {
		wrong = append(wrong, fmt.Errorf("state %s: %w", keyOptions, err))
	}
	seen := map[string]workspace.State{}
	for key := range kept {
		var offset int64
		var known workspace.State
		if task, ok := strings.CutPrefix(key, keyCursor); ok {
			read(key, &offset)
			its.shell.cursors[task] = offset
		} else if real, ok := strings.CutPrefix(key, keySeen); ok {
			read(key, &known)
			seen[real] = known
		}
	}
	s.judge.readState.Merge(seen)
	return errors.Join(wrong...)
}
