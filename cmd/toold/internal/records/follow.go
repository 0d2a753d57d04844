package records

import (
	"context"
	"sync"
	"time"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// followEvery is how often sessions are looked for that are new.
const followEvery = time.Second

// A follower watches sessions, each on a goroutine of its own, and collects what they report in one place.
type follower struct {
	link     *toold.Conn
	came     chan news
	watchers sync.WaitGroup
	watching map[string]bool
	inputs   bool
}

// news is an event of a session, or, without one, how watching it has ended.
type news struct {
	session string
	event   *tooldv1.ExecuteResponse
	err     error
}

// follow writes what there is, and then what comes, of every session or of the one that is wanted, until ctx ends or the
// daemon does.
func (w *logWriter) follow(ctx context.Context, l *toold.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{link: l, came: make(chan news), watching: map[string]bool{}, inputs: w.filter.inputs}
	defer f.watchers.Wait()
	defer cancel()
	look := time.NewTicker(followEvery)
	defer look.Stop()
	for {
		names := []string{w.filter.session}
		if w.filter.session == "" {
			var err error
			if names, err = sessionNames(ctx, l); err != nil {
				return err
			}
		}
		for _, name := range names {
			f.begin(ctx, name)
		}
		for looking := false; !looking; {
			select {
			case n := <-f.came:
				if over, err := w.heard(n); over || err != nil {
					return err
				}
			case <-look.C:
				looking = true
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// heard takes news, and reports whether there will be no more.
func (w *logWriter) heard(n news) (over bool, err error) {
	switch {
	case n.event != nil:
		return false, w.take(n.session, n.event)
	case w.filter.session != "" || toold.Reason(n.err) == "shutting_down":
		return true, n.err
	}
	return false, nil
}

// begin watches a session, unless it is watched.
func (f *follower) begin(ctx context.Context, name string) {
	if f.watching[name] {
		return
	}
	f.watching[name] = true
	bring := func(n news) error {
		select {
		case f.came <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.watchers.Go(func() {
		err := Watch(ctx, f.link, &tooldv1.WatchRequest{SessionId: name, Inputs: f.inputs}, func(event *tooldv1.ExecuteResponse) error { return bring(news{name, event, nil}) })
		_ = bring(news{name, nil, err}) // when that fails no receiver is left
	})
}
