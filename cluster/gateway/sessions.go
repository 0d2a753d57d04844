// The methods that a gateway answers itself: the list of a principal's sessions
// over all of its workspaces, and what the gateway is.

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/apierror"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// How many sessions a page has, and how many bytes, as of a daemon's; and how many
// workspaces are asked at once.
const (
	maxListed   = 1000
	listedBytes = 3 << 20
	askedAtOnce = 16
)

// features names what is served, as GetInfo lists it.
var features = []string{"cluster"}

func (g *Gateway) getInfo(ctx context.Context, _ *tooldv1.GetInfoRequest) (*tooldv1.GetInfoResponse, error) {
	return &tooldv1.GetInfoResponse{
		Version: g.config.Version, Pid: int32(os.Getpid()), Started: timestamppb.New(g.started), Features: features,
		Principal: principalOf(ctx),
	}, nil
}

// listSessions asks the daemon of each workspace, so it starts those that are at
// rest. All of them order sessions by when they were made, and their page tokens
// are places in that order, so one token serves for all.
func (g *Gateway) listSessions(ctx context.Context, request *tooldv1.ListSessionsRequest) (*tooldv1.ListSessionsResponse, error) {
	if request.GetPageSize() < 0 {
		return nil, apierror.Invalidf("invalid_page_size", "page_size", "page_size is %d, but must not be negative.", request.GetPageSize())
	}
	who := principalOf(ctx)
	workspaces, err := g.index.workspaces(ctx, who)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	merged := page{most: min(cmp.Or(int(request.GetPageSize()), maxListed), maxListed)}
	var asking sync.WaitGroup
	slots := make(chan struct{}, askedAtOnce)
	for _, workspace := range workspaces {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			part := &tooldv1.ListSessionsResponse{}
			if err := g.ask(ctx, call{who, workspace, tooldv1.SessionService_ListSessions_FullMethodName}, request, part); err != nil {
				cancel(err) // a list that lacks some would look like a whole one
				return
			}
			for _, s := range part.GetSessions() {
				for n, root := range s.GetRoots() {
					s.Roots[n] = g.rootFor(workspace, root)
				}
			}
			merged.add(part)
		})
	}
	asking.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return merged.response(), nil
}

// A page is what is newest of the sessions of several workspaces. Its zero value
// with most set is empty. It is safe for concurrent use.
type page struct {
	most int

	mu       sync.Mutex // guards the rest
	sessions []*tooldv1.Session
	more     bool
	until    *tooldv1.Session // of what is older, some workspace has not answered; nil: nothing
}

// add adds a workspace's page.
func (p *page) add(part *tooldv1.ListSessionsResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, part.GetSessions()...)
	if n := len(part.GetSessions()); n > 0 && part.GetNextPageToken() != "" {
		p.more = true
		if last := part.GetSessions()[n-1]; p.until == nil || newerFirst(last, p.until) < 0 {
			p.until = last
		}
	}
	slices.SortFunc(p.sessions, newerFirst)
	if len(p.sessions) > p.most {
		p.sessions, p.more = p.sessions[:p.most], true
	}
}

// response returns the page, cut to what fits into one message.
func (p *page) response() *tooldv1.ListSessionsResponse {
	response, size := &tooldv1.ListSessionsResponse{}, 0
	for _, s := range p.sessions {
		size += proto.Size(s)
		if size > listedBytes && len(response.Sessions) > 0 || p.until != nil && newerFirst(s, p.until) > 0 {
			p.more = true
			break
		}
		response.Sessions = append(response.Sessions, s)
	}
	if n := len(response.Sessions); n > 0 && p.more {
		response.NextPageToken = tokenFor(response.Sessions[n-1])
	}
	return response
}

// newerFirst is the order of a daemon's list.
func newerFirst(a, b *tooldv1.Session) int {
	return cmp.Or(created(b).Compare(created(a)), cmp.Compare(b.GetSessionId(), a.GetSessionId()))
}

func created(s *tooldv1.Session) time.Time { return s.GetCreated().AsTime() }

// tokenFor returns the page token of a place, in a daemon's own form.
func tokenFor(s *tooldv1.Session) string {
	return fmt.Sprintf("%d/%s", created(s).UnixNano(), s.GetSessionId())
}
