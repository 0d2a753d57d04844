// What is open in the daemon's sessions, for the commands that act on it from beside. It changes nothing.

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// eachOpen describes each open session with its open calls and questions, the newest first; with a name, that one only.
func eachOpen(ctx context.Context, l *toold.Conn, session string, do func(*tooldv1.GetSessionResponse) error) error {
	names := []string{session}
	if session == "" {
		list, err := l.ListSessions(ctx, false)
		if err != nil {
			return err
		}
		names = nil
		for _, x := range list {
			if x.GetOpenCalls() > 0 || x.GetOpenQuestions() > 0 || len(x.GetBackgroundTasks()) > 0 {
				names = append(names, x.GetSessionId())
			}
		}
	}
	for _, name := range names {
		x, err := l.Sessions.GetSession(ctx, &tooldv1.GetSessionRequest{SessionId: name})
		if err == nil {
			err = do(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newestHere returns the newest open session that works in the current directory or in one above it.
func newestHere(ctx context.Context, l *toold.Conn) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // as the daemon has roots
		dir = real
	}
	list, err := l.ListSessions(ctx, false)
	if err != nil {
		return "", err
	}
	for _, x := range list {
		for _, root := range x.GetRoots() {
			if dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/") {
				return x.GetSessionId(), nil
			}
		}
	}
	return "", cli.Failed("no open session works in %s. \"toold sessions\" lists those that are open; name one.", dir)
}
