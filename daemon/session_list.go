// ListSessions: the sessions of a principal, page by page. A page is bounded in bytes, so that it fits into one message
// whatever clients have put into their sessions.

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
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
	slices.SortFunc(infos, func(a, b journal.Info) int { return listedPlace(b).compare(listedPlace(a)) })
	after, err := placeOf(request.GetPageToken())
	if err != nil {
		return nil, err
	}
	most := int(request.GetPageSize())
	if most == 0 || most > mostListedSessions {
		most = mostListedSessions
	}
	response, size := &tooldv1.ListSessionsResponse{}, 0
	for i, info := range infos {
		if after != nil && listedPlace(info).compare(*after) >= 0 {
			continue
		}
		listed := x.daemon.sessions.listed(principalOf(ctx), info, request.GetIncludeClosed())
		if listed == nil {
			continue
		}
		size += proto.Size(listed)
		if len(response.Sessions) == most || size > listedBytes && len(response.Sessions) > 0 {
			response.NextPageToken = listedPlace(infos[i-1]).token()
			break
		}
		response.Sessions = append(response.Sessions, listed)
	}
	return response, nil
}

// listed describes a session in a list; nil: it is not one of who's, or closed and not asked for.
func (x *sessionSet) listed(who access.Principal, info journal.Info, closed bool) *tooldv1.Session {
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

// inList leaves out of a description what may be long, and says so in it.
func inList(wire *tooldv1.Session) *tooldv1.Session {
	o := proto.CloneOf(wire.GetOptions()) // they are the session's own
	if o.GetSettingsJson() != "" {
		o.SettingsJson, wire.Omitted = nil, append(wire.Omitted, "options.settings_json")
	}
	if proto.Size(o.GetTools()) > listedLong {
		o.Tools, wire.Omitted = nil, append(wire.Omitted, "options.tools")
	}
	wire.Options = o
	if proto.Size(&tooldv1.Session{Todos: wire.GetTodos()}) > listedLong {
		wire.Todos, wire.Omitted = nil, append(wire.Omitted, "todos")
	}
	for _, task := range wire.GetBackgroundTasks() {
		if whole := task.GetCommand(); len(whole) > listedLong {
			task.Command, wire.Omitted = shortened(whole, listedLong), append(wire.Omitted, "background_tasks.command")
		}
	}
	slices.Sort(wire.Omitted)
	wire.Omitted = slices.Compact(wire.Omitted)
	return wire
}

// A listPlace is where a session stands in the list. Places do not change, so a page token stays good whatever happens to
// the session that it was made of.
type listPlace struct {
	created int64 // nanoseconds since 1970
	name    string
}

func listedPlace(info journal.Info) listPlace { return listPlace{info.Created.UnixNano(), info.Name} }

// compare orders places from the oldest to the newest.
func (p listPlace) compare(other listPlace) int {
	return cmp.Or(cmp.Compare(p.created, other.created), cmp.Compare(p.name, other.name))
}

func (p listPlace) token() string { return fmt.Sprintf("%d/%s", p.created, p.name) }

// placeOf returns the place that a page token stands for; nil: it is empty.
func placeOf(token string) (*listPlace, error) {
	if token == "" {
		return nil, nil
	}
	var p listPlace
	if _, err := fmt.Sscanf(token, "%d/%s", &p.created, &p.name); err != nil {
		return nil, apierror.Invalidf("invalid_page_token", "page_token", "The page_token is none that an earlier answer gave. Leave it out to begin again.")
	}
	return &p, nil
}
