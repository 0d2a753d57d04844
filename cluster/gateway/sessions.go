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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
// are places in that order, so one token serves for all. Workspaces that do not
// answer are named in the response; if none answers it returns why.
func (g *Gateway) listSessions(ctx context.Context, request *tooldv1.ListSessionsRequest) (*tooldv1.ListSessionsResponse, error) {
	if request.GetPageSize() < 0 {
		return nil, apierror.Invalidf("invalid_page_size", "page_size", "page_size is %d, but must not be negative.", request.GetPageSize())
	}
	who := principalOf(ctx)
	workspaces, err := g.index.workspaces(ctx, who)
	if err != nil {
		return nil, err
	}
	merged := page{most: min(cmp.Or(int(request.GetPageSize()), maxListed), maxListed)}
	limited, cancel := context.WithDeadline(ctx, g.listUntil(ctx, time.Now()))
	defer cancel()
	var asking sync.WaitGroup
	slots := make(chan struct{}, askedAtOnce)
	for _, workspace := range workspaces {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			part, err := g.listWorkspace(limited, call{who, workspace, tooldv1.SessionService_ListSessions_FullMethodName, ""}, request)
			switch {
			case err == nil:
				merged.add(part)
			case reasonOf(err) == workspaceDeleted:
				g.index.remove(who, workspace, "")
				merged.add(&tooldv1.ListSessionsResponse{})
			case status.Code(err) == codes.InvalidArgument: // so it is for every workspace
				merged.refuse(err)
				cancel()
			default:
				merged.miss(workspace, err)
			}
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return merged.response()
}

// listUntil returns how long workspaces are waited for: of a client's own deadline it
// leaves a quarter, so that the client learns of those that have answered.
func (g *Gateway) listUntil(ctx context.Context, now time.Time) time.Time {
	wait := g.config.Patience
	if deadline, has := ctx.Deadline(); has {
		wait = min(wait, deadline.Sub(now)*3/4)
	}
	return now.Add(wait)
}

// listWorkspace returns the sessions of one workspace, with roots as clients name them.
func (g *Gateway) listWorkspace(ctx context.Context, c call, request *tooldv1.ListSessionsRequest) (*tooldv1.ListSessionsResponse, error) {
	part := &tooldv1.ListSessionsResponse{}
	if err := g.ask(ctx, c, request, part); err != nil {
		return nil, err
	}
	for _, s := range part.GetSessions() {
		for n, root := range s.GetRoots() {
			s.Roots[n] = g.rootFor(c.workspace, root)
		}
	}
	return part, nil
}

// A page is what is newest of the sessions of several workspaces. Its zero value
// with most set is empty. It is safe for concurrent use.
type page struct {
	most int

	mu       sync.Mutex // guards the rest
	sessions []*tooldv1.Session
	more     bool
	until    *tooldv1.Session // of what is older, some workspace has not answered; nil: nothing
	answered bool             // by some workspace
	unlisted []*tooldv1.UnlistedWorkspace
	why      error // of one that is unlisted
	refused  error // why there is no page
}

// refuse has the page be an error.
func (p *page) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = err
}

// miss notes that a workspace has not answered, and why.
func (p *page) miss(workspace string, err error) {
	if info := infoOf(err); info == nil { // of this gateway's own limit, or of gRPC itself
		err = tryAgain(apierror.New(codes.Unavailable, "no_answer", "The workspace's node has not answered in time."), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unlisted, p.why = append(p.unlisted, &tooldv1.UnlistedWorkspace{Workspace: workspace, Code: reasonOf(err), Text: status.Convert(err).Message()}), err
}

// add adds a workspace's page.
func (p *page) add(part *tooldv1.ListSessionsResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
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
func (p *page) response() (*tooldv1.ListSessionsResponse, error) {
	if p.refused != nil {
		return nil, p.refused
	}
	if !p.answered && p.why != nil {
		return nil, p.why
	}
	slices.SortFunc(p.unlisted, func(a, b *tooldv1.UnlistedWorkspace) int { return cmp.Compare(a.GetWorkspace(), b.GetWorkspace()) })
	response, size := &tooldv1.ListSessionsResponse{Unlisted: p.unlisted}, 0
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
	return response, nil
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
