package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/fs/pathname"
)

// SessionsHere returns the current directory, and the sessions that work in it or in one above it, the newest first; with closed,
// those too that are closed and still kept.
func SessionsHere(ctx context.Context, l *toold.Conn, closed bool) (dir string, here []*tooldv1.Session, err error) {
	if dir, err = os.Getwd(); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the daemon has roots
	}
	if err != nil {
		return "", nil, err
	}
	here, err = l.ListSessions(ctx, closed)
	return dir, slices.DeleteFunc(here, func(x *tooldv1.Session) bool {
		return !slices.ContainsFunc(x.GetRoots(), func(root string) bool { return pathname.Within(root, dir) })
	}), err
}
