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

// news is an event of a session, or, without one, how watching it has ended.
type news struct {
	session string
	event   *tooldv1.ExecuteResponse
	err     error
}

// follow writes what there is, and then what comes, of every session or of the one that is wanted, until ctx ends or the
// daemon does. Each session is watched on a goroutine of its own.
func (w *logWriter) follow(ctx context.Context, l *toold.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	came := make(chan news)
	bring := func(n news) error {
		select {
		case came <- n:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	watched := map[string]bool{}
	look := time.NewTicker(followEvery)
	defer look.Stop()
	for {
		names, err := w.names(ctx, l)
		if err != nil {
			return err
		}
		for _, name := range names {
			if watched[name] {
				continue
			}
			watched[name] = true
			watchers.Go(func() {
				err := Watch(ctx, l, w.filter.request(name), func(event *tooldv1.ExecuteResponse) error { return bring(news{name, event, nil}) })
				_ = bring(news{name, nil, err}) // when that fails no receiver is left
			})
		}
		for looking := false; !looking; {
			select {
			case n := <-came:
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
