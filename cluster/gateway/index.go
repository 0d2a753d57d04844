// The index: in which workspace a session is, and which workspaces a principal
// has. It is a hint: the daemon of the workspace knows its sessions.

package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc/codes"

	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/tools/text/ellipsis"
)

const (
	indexBucket = "toold_index"
	maxSessions = 10_000 // remembered here; ours
	// indexLife is how long an entry is kept that no client asks for.
	indexLife = 180 * 24 * time.Hour
)

// An entry is a session in the bucket, or without a session one of the
// principal's workspaces.
type entry struct {
	Principal string `json:"principal"`
	Session   string `json:"session,omitempty"`
	Workspace string `json:"workspace"`
}

// key returns the entry's key. Names may hold any characters, so it has hashes.
func (e entry) key() string {
	if e.Session == "" {
		return "w." + hashOf(e.Principal) + "." + hashOf(e.Workspace)
	}
	return "s." + hashOf(e.Principal) + "." + hashOf(e.Session)
}

// hashOf returns the first 160 bits of the SHA-256 of a name, in base32.
func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}

// An index is safe for concurrent use.
type index struct {
	bucket jetstream.KeyValue
	known  *cache[string, string] // the workspace of an entry, by its key
}

func openIndex(ctx context.Context, js jetstream.JetStream, replicas int) (*index, error) {
	bucket, err := members.Bucket(ctx, js, indexBucket, replicas, indexLife)
	return &index{bucket, newCache[string, string](maxSessions)}, err
}

// workspaceOf returns the workspace of a session. The error is an *apierror.Error.
func (x *index) workspaceOf(ctx context.Context, principal, session string) (string, error) {
	e := entry{Principal: principal, Session: session}
	if workspace, found := x.known.get(e.key()); found {
		return workspace, nil
	}
	found, written, err := x.read(ctx, e)
	if err != nil {
		return "", err
	}
	if found.Workspace == "" {
		return "", apierror.NotFoundf("unknown_session", "session_id", "There is no session %q.", ellipsis.Bytes(strings.ToValidUTF8(session, "\uFFFD"), maxShown))
	}
	if time.Since(written) > indexLife/2 {
		return found.Workspace, x.note(ctx, principal, found.Workspace, session)
	}
	x.known.put(e.key(), found.Workspace)
	return found.Workspace, nil
}

// read returns an entry as the bucket has it, without a workspace if it has none.
func (x *index) read(ctx context.Context, e entry) (found entry, written time.Time, err error) {
	value, err := x.bucket.Get(ctx, e.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return entry{}, time.Time{}, nil
	}
	if err != nil {
		return entry{}, time.Time{}, indexUnavailable(ctx, err)
	}
	if err := json.Unmarshal(value.Value(), &found); err != nil || found.Principal != e.Principal || found.Session != e.Session {
		return entry{}, time.Time{}, nil // it is written again when the session is attached with its roots
	}
	return found, value.Created(), nil
}

func indexUnavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return tryAgain(apierror.New(codes.Unavailable, "no_index", "The index of sessions cannot be reached. Try again."), err)
}

// note writes where a session is, and that the principal has the workspace.
func (x *index) note(ctx context.Context, principal, workspace, session string) error {
	for _, e := range []entry{{principal, "", workspace}, {principal, session, workspace}} {
		if known, _ := x.known.get(e.key()); known == workspace {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := x.bucket.Put(ctx, e.key(), text); err != nil {
			return indexUnavailable(ctx, err)
		}
		x.known.put(e.key(), workspace)
	}
	return nil
}

// claim notes where a session is, unless the index has it in another workspace,
// which is returned then. isNew reports whether the index had neither the session nor the workspace.
func (x *index) claim(ctx context.Context, principal, workspace, session string) (other string, isNew bool, err error) {
	e := entry{principal, session, workspace}
	if known, _ := x.known.get(e.key()); known == workspace {
		return "", false, nil
	}
	had, _, err := x.read(ctx, entry{Principal: principal, Workspace: workspace})
	if err != nil {
		return "", false, err
	}
	text, err := json.Marshal(e)
	if err != nil {
		return "", false, err
	}
	_, err = x.bucket.Create(ctx, e.key(), text)
	isNew = err == nil && had.Workspace == ""
	if members.Conflict(err) {
		found, _, err := x.read(ctx, e)
		if err != nil {
			return "", false, err
		}
		if found.Workspace != "" && found.Workspace != workspace {
			return found.Workspace, false, nil
		}
	} else if err != nil {
		return "", false, indexUnavailable(ctx, err)
	}
	return "", isNew, x.note(ctx, principal, workspace, session)
}

// forget drops what is remembered here of a session.
func (x *index) forget(principal, session string) {
	x.known.remove(entry{Principal: principal, Session: session}.key())
}

// remove removes a workspace that was deleted, and one of its sessions. What cannot be removed now is with the next request.
func (x *index) remove(principal, workspace, session string) {
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	for _, e := range []entry{{principal, "", workspace}, {principal, session, workspace}} {
		x.known.remove(e.key())
		if found, _, err := x.read(ctx, e); err == nil && found == e {
			_ = x.bucket.Purge(ctx, e.key())
		}
	}
}

// removeTime is how long a client that is refused waits for the index.
const removeTime = 2 * time.Second

// workspaces returns the workspaces of a principal.
func (x *index) workspaces(ctx context.Context, principal string) (names []string, err error) {
	watcher, err := x.bucket.Watch(ctx, "w."+hashOf(principal)+".*", jetstream.IgnoreDeletes())
	if err != nil {
		return nil, indexUnavailable(ctx, err)
	}
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case value, open := <-watcher.Updates():
			if value == nil {
				if !open {
					return nil, indexUnavailable(ctx, errors.New("the list has broken off"))
				}
				return names, nil
			}
			var e entry
			if err := json.Unmarshal(value.Value(), &e); err == nil && e.Principal == principal {
				names = append(names, e.Workspace)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
