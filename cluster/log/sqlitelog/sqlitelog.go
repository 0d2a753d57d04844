// Package sqlitelog keeps the segments of workspaces in an SQLite database:
// for one machine, where a workspace is to outlive its node's process only.
//
// It does not know what a segment means.
package sqlitelog

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/toold/toold/cluster/log"
)

// Positions count from 1 in each workspace. That of the last segment is kept
// with it, and the last segment is never removed.
const schema = `
create table if not exists segments (
	principal blob not null, name blob not null, pos integer not null, data blob not null,
	primary key (principal, name, pos)
) without rowid`

// busyWait is how long a statement waits for another process that has the
// database.
const busyWait = 5 * time.Second

// Log is a [log.Log] in a database file.
type Log struct {
	mu   sync.Mutex // held for one transaction
	conn *sqlite.Conn
}

// Open opens a database, and creates it if it does not exist. Another process
// may have it open too.
func Open(path string) (*Log, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyWait)
	for _, statement := range []string{"pragma journal_mode = wal", "pragma synchronous = full", schema} {
		if err := sqlitex.ExecuteTransient(conn, statement, nil); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("the log's database %s: %w", path, err)
		}
	}
	return &Log{conn: conn}, nil
}

// Close closes the database.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn.Close()
}

// locked runs do with the connection, unless ctx has ended. What do has begun is
// not interrupted.
func (l *Log) locked(ctx context.Context, w log.Workspace, do func() error) error {
	if err := w.Check(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return do()
}

// Append is [log.Log.Append].
func (l *Log) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (pos log.Pos, err error) {
	if err := log.CheckSegment(w, data); err != nil {
		return 0, err
	}
	err = l.locked(ctx, w, func() (err error) {
		end, err := sqlitex.ImmediateTransaction(l.conn)
		if err != nil {
			return unknown(err)
		}
		defer func() { // which may fail: then err is set
			if end(&err); err != nil {
				err = unknown(err)
			}
		}()
		pos, err = l.insert(w, prev, data)
		return err
	})
	return pos, err
}

func (l *Log) insert(w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	last, err := l.last(w)
	if err != nil {
		return 0, err
	}
	if last.Pos != prev {
		return 0, &log.FencedError{Last: last}
	}
	pos := prev + 1
	return pos, l.run("insert into segments (principal, name, pos, data) values (?, ?, ?, ?)", nil, w, pos, data)
}

// Last is [log.Log.Last].
func (l *Log) Last(ctx context.Context, w log.Workspace) (s log.Segment, err error) {
	err = l.locked(ctx, w, func() (err error) {
		s, err = l.last(w)
		return unknown(err)
	})
	return s, err
}

func (l *Log) last(w log.Workspace) (s log.Segment, err error) {
	err = l.run("select pos, data from segments where principal = ? and name = ? order by pos desc limit 1",
		func(row log.Segment) { s = row }, w)
	return s, err
}

// Read is [log.Log.Read].
func (l *Log) Read(ctx context.Context, w log.Workspace, from log.Pos) iter.Seq2[log.Segment, error] {
	return func(yield func(log.Segment, error) bool) {
		for {
			var s log.Segment
			err := l.locked(ctx, w, func() error {
				return unknown(l.run("select pos, data from segments where principal = ? and name = ? and pos >= ? order by pos limit 1",
					func(row log.Segment) { s = row }, w, from))
			})
			if err == nil && s.Pos == 0 || !yield(s, err) || err != nil {
				return
			}
			from = s.Pos + 1
		}
	}
}

// Workspaces returns the workspaces that the log has, by their names. It ends with the first error.
func (l *Log) Workspaces() iter.Seq2[log.Workspace, error] {
	return func(yield func(log.Workspace, error) bool) {
		all, err := l.workspaces()
		for _, w := range all {
			if !yield(w, nil) {
				return
			}
		}
		if err != nil {
			yield(log.Workspace{}, unknown(err))
		}
	}
}

func (l *Log) workspaces() (all []log.Workspace, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err = sqlitex.Execute(l.conn, "select distinct principal, name from segments order by principal, name", &sqlitex.ExecOptions{
		ResultFunc: func(row *sqlite.Stmt) error {
			all = append(all, log.Workspace{Principal: row.ColumnText(0), Name: row.ColumnText(1)})
			return nil
		},
	})
	return all, err
}

// Purge is [log.Log.Purge].
func (l *Log) Purge(ctx context.Context, w log.Workspace, before log.Pos) error {
	return l.locked(ctx, w, func() error {
		last, err := l.last(w)
		if err != nil {
			return unknown(err)
		}
		if err := log.CheckPurge(last, before); err != nil {
			return err
		}
		return unknown(l.run("delete from segments where principal = ? and name = ? and pos < ?", nil, w, before))
	})
}

// run runs a statement whose first two parameters are the workspace.
func (l *Log) run(query string, each func(log.Segment), w log.Workspace, more ...any) error {
	args := []any{[]byte(w.Principal), []byte(w.Name)}
	for _, m := range more {
		if pos, ok := m.(log.Pos); ok {
			m = int64(pos)
		}
		args = append(args, m)
	}
	options := &sqlitex.ExecOptions{Args: args}
	if each != nil {
		options.ResultFunc = func(row *sqlite.Stmt) error {
			data := make([]byte, row.ColumnLen(1))
			row.ColumnBytes(1, data)
			each(log.Segment{Pos: log.Pos(row.ColumnInt64(0)), Data: data})
			return nil
		}
	}
	return sqlitex.Execute(l.conn, query, options)
}

// unknown wraps an error of the database, after which it is not known whether
// anything was stored.
func unknown(err error) error {
	if _, fenced := err.(*log.FencedError); err == nil || fenced { //nolint:errorlint // it is our own, unwrapped
		return err
	}
	return fmt.Errorf("%w: %w", log.ErrUnknown, err)
}
