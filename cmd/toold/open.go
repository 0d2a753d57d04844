// What is open in the daemon's sessions, for the commands that act on it from beside. It changes nothing.

package main

import (
	"context"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// openSessions describes each session in which something is open, the newest first; with a name, that one only.
func openSessions(ctx context.Context, l *toold.Conn, name string) (found []*tooldv1.GetSessionResponse, err error) {
	list := []*tooldv1.Session{{SessionId: name}}
	if name == "" {
		if list, err = l.ListSessions(ctx, false); err != nil {
			return nil, err
		}
	}
	for _, x := range list {
		if name == "" && x.GetOpenCalls() == 0 && x.GetOpenQuestions() == 0 && len(x.GetBackgroundTasks()) == 0 {
			continue
		}
		session, err := l.Sessions.GetSession(ctx, &tooldv1.GetSessionRequest{SessionId: x.GetSessionId()})
		if err != nil {
			return nil, err
		}
		found = append(found, session)
	}
	return found, nil
}

// newestHere returns the newest open session that works in the current directory or in one above it.
func newestHere(ctx context.Context, l *toold.Conn) (string, error) {
	dir, list, err := cli.SessionsHere(ctx, l, false)
	if err == nil && len(list) == 0 {
		err = cli.Failed("no open session works in %s. \"toold sessions\" lists those that are open; name one.", dir)
	}
	if err != nil {
		return "", err
	}
	return list[0].GetSessionId(), nil
}
