// The list of sessions, open and closed, in pages. A page is bounded in bytes, so that it fits into
// one message whatever clients have put into their sessions.

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// How many sessions one page has, and how many bytes: less than the 4 MiB that most clients take.
const (
	mostListedSessions = 1000
	listedBytes        = 3 << 20
	listedLong         = 4 << 10 // bytes of what may be long of one session, by field
)

// ListSessions returns the sessions of the caller's that are kept, newest first.
func (x *sessionServer) ListSessions(ctx context.Context, request *tooldv1.ListSessionsRequest) (*tooldv1.ListSessionsResponse, error) {
	if request.GetPageSize() < 0 {
		return nil, apierror.Invalidf("invalid_page_size", "page_size", "page_size is %d, but must not be negative.", request.GetPageSize())
	}
	infos, err := x.daemon.journal.Logs()
	if err != nil {
		return nil, journalRefusal(err)
	}
	slices.SortFunc(infos, func(a, b journal.Info) int { return olderFirst(b, a) })
	if token := request.GetPageToken(); token != "" {
		after, err := placeOf(token)
		if err != nil {
			return nil, err
		}
		infos = slices.DeleteFunc(infos, func(info journal.Info) bool { return olderFirst(info, after) >= 0 })
	}
	most := min(cmp.Or(int(request.GetPageSize()), mostListedSessions), mostListedSessions)
	response, size := &tooldv1.ListSessionsResponse{}, 0
	for i, info := range infos {
		listed := x.daemon.sessions.listed(principalOf(ctx), info, request.GetIncludeClosed())
		if listed == nil {
			continue
		}
		size += proto.Size(listed)
		if len(response.Sessions) == most || size > listedBytes && len(response.Sessions) > 0 {
			response.NextPageToken = tokenFor(infos[i-1])
			break
		}
		response.Sessions = append(response.Sessions, listed)
	}
	return response, nil
}

// listed describes a session in a list; nil: it is not one of who's, or closed and not asked for.
func (x *sessionSet) listed(who access.Principal, info journal.Info, closed bool) *tooldv1.Session {
	if r := x.atRest(info.Name); r != nil {
		if r.meta.owner() != who {
			return nil
		}
		return r.describe(info)
	}
	if s, ok := x.find(info.Name); ok && s.meta.owner() == who {
		return inList(s.describe())
	} else if ok || x.keptMeta(info.Name).owner() != who {
		return nil
	}
	if kept := x.keptSession(info); closed || !kept.GetClosed() {
		return inList(kept)
	}
	return nil
}

// inList leaves out of a description what may be long, and notes that in it.
func inList(wire *tooldv1.Session) *tooldv1.Session {
	o := proto.CloneOf(wire.GetOptions()) // they are the session's own
	wire.Options = o
	if o.GetSettingsJson() != "" {
		o.SettingsJson, wire.Omitted = nil, append(wire.Omitted, "options.settings_json")
	}
	if proto.Size(o.GetTools()) > listedLong {
		o.Tools, wire.Omitted = nil, append(wire.Omitted, "options.tools")
	}
	if proto.Size(&tooldv1.Session{Todos: wire.GetTodos()}) > listedLong {
		wire.Todos, wire.Omitted = nil, append(wire.Omitted, "todos")
	}
	for _, task := range wire.GetBackgroundTasks() {
		if whole := task.GetCommand(); len(whole) > listedLong {
			task.Command, wire.Omitted = convert.Shortened(whole, listedLong), append(wire.Omitted, "background_tasks.command")
		}
	}
	slices.Sort(wire.Omitted)
	wire.Omitted = slices.Compact(wire.Omitted)
	return wire
}

// olderFirst orders sessions by when they were made. Their places do not change, so a page token
// stays good whatever happens to the session that it was made of.
func olderFirst(a, b journal.Info) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

func tokenFor(info journal.Info) string {
	return fmt.Sprintf("%d/%s", info.Created.UnixNano(), info.Name)
}

// placeOf returns the place in the list that a page token stands for.
func placeOf(token string) (place journal.Info, err error) {
	var created int64
	if _, err := fmt.Sscanf(token, "%d/%s", &created, &place.Name); err != nil {
		return place, apierror.Invalidf("invalid_page_token", "page_token", "The page_token is none that an earlier answer gave. Leave it out to begin again.")
	}
	place.Created = time.Unix(0, created)
	return place, nil
}
