package quota

import (
	"context"
	"sync"
)

// A Session is one of those that a principal has attached. A session that several streams are attached to counts once.
type Session struct {
	accounts *Accounts
	of       *principal
	name     string // empty: it has none yet
	once     sync.Once
}

// Session counts a session until Release. name is empty for one whose name is not known yet. It returns an *[Exceeded] if the
// principal has as many as it may have, and an error of NATS if that is not known.
func (a *Accounts) Session(ctx context.Context, who, name string) (*Session, error) {
	p := a.of(who)
	if err := p.lockToAsk(ctx); err != nil {
		return nil, err
	}
	defer p.unlock()
	s := &Session{accounts: a, of: p, name: name}
	if name != "" && p.sessions[name] > 0 {
		p.sessions[name]++
		return s, nil
	}
	_, err := a.take(ctx, who, p, func(free Amounts) (Amounts, error) {
		if free.Sessions < 1 {
			return Amounts{}, &Exceeded{What: "sessions"}
		}
		return Amounts{Sessions: 1}, nil
	})
	if err != nil {
		return nil, err
	}
	if name == "" {
		p.unnamed++
	} else {
		p.sessions[name]++
	}
	return s, nil
}

// Name sets the name of a session that had none. If the principal had one of that name, they count as one from then on.
func (s *Session) Name(name string) {
	s.of.lock()
	defer s.of.unlock()
	if s.name != "" || name == "" {
		return
	}
	s.name = name
	s.of.unnamed--
	if s.of.sessions[name]++; s.of.sessions[name] > 1 {
		s.accounts.released(s.of)
	}
}

// Release has the session count no more. It may be called more than once.
func (s *Session) Release() {
	s.once.Do(func() {
		s.of.lock()
		defer s.of.unlock()
		if s.name == "" {
			s.of.unnamed--
		} else if s.of.sessions[s.name]--; s.of.sessions[s.name] == 0 {
			delete(s.of.sessions, s.name)
		}
		s.accounts.released(s.of)
	})
}

// Calls takes as many calls as are free of the principal's, at most so many, until release is called. It returns an *[Exceeded] if
// none is.
func (a *Accounts) Calls(ctx context.Context, who string, most int) (n int, release func(), err error) {
	p := a.of(who)
	if err := p.lockToAsk(ctx); err != nil {
		return 0, nil, err
	}
	defer p.unlock()
	taken, err := a.take(ctx, who, p, func(free Amounts) (Amounts, error) {
		if free.Calls < 1 {
			return Amounts{}, &Exceeded{What: "calls"}
		}
		return Amounts{Calls: min(most, free.Calls)}, nil
	})
	if err != nil {
		return 0, nil, err
	}
	p.calls += taken.Calls
	var once sync.Once
	return taken.Calls, func() {
		once.Do(func() {
			p.lock()
			defer p.unlock()
			p.calls -= taken.Calls
			a.released(p)
		})
	}, nil
}
