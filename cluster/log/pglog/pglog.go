// Package pglog keeps the segments of workspaces in a PostgreSQL database, for
// those who have one that is replicated.
//
// How durable a segment is depends on the server: synchronous_commit must be on,
// and a standby that may be promoted must be a synchronous one.
//
// It does not know what a segment means.
package pglog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toold/toold/cluster/log"
)

// toold_logs has one row for each workspace: where its log ends.
var schema = []string{
	`create table if not exists toold_logs (
	principal bytea not null, name bytea not null, last bigint not null, primary key (principal, name)
)`,
	`create table if not exists toold_segments (
	principal bytea not null, name bytea not null, pos bigint not null, data bytea not null, primary key (principal, name, pos)
)`,
}

// The row of toold_logs decides between two appends behind the same segment: the
// later one waits for it and then finds another end. Asking toold_segments would
// not do, since the statement's snapshot may be older than what was appended and
// purged in the meantime.
const insert = `
with ends as (
	insert into toold_logs (principal, name, last) select $1, $2, $3::bigint + 1
	where $3::bigint = 0 or exists (select from toold_logs where principal = $1 and name = $2)
	on conflict (principal, name) do update set last = $3::bigint + 1 where toold_logs.last = $3::bigint
	returning last
)
insert into toold_segments (principal, name, pos, data) select $1, $2, last, $4 from ends`

// schemaLock is the advisory lock that is held while the tables are made, since
// two sessions that make it at once would fail.
const schemaLock = 0x746f6f6c64 // "toold"

// Log is a [log.Log] in a database.
type Log struct{ pool *pgxpool.Pool }

// Open connects to a database, and makes the tables if they do not exist.
func Open(ctx context.Context, url string) (*Log, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
			return err
		}
		for _, table := range schema {
			if _, err := tx.Exec(ctx, table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Log{pool: pool}, nil
}

// Close closes all connections.
func (l *Log) Close() { l.pool.Close() }

// Append is [log.Log.Append].
func (l *Log) Append(ctx context.Context, w log.Workspace, prev log.Pos, data []byte) (log.Pos, error) {
	if err := log.CheckSegment(w, data); err != nil {
		return 0, err
	}
	tag, err := l.pool.Exec(ctx, insert, []byte(w.Principal), []byte(w.Name), int64(prev), data)
	if err != nil {
		return 0, unknown(err)
	}
	if tag.RowsAffected() == 1 {
		return prev + 1, nil
	}
	last, err := l.Last(ctx, w)
	if err != nil {
		return 0, err
	}
	if last.Pos == prev { // the statement that was in the way has been rolled back
		return 0, log.ErrBusy
	}
	return 0, &log.FencedError{Last: last}
}

// Last is [log.Log.Last].
func (l *Log) Last(ctx context.Context, w log.Workspace) (log.Segment, error) {
	return l.one(ctx, w, "select pos, data from toold_segments where principal = $1 and name = $2 order by pos desc limit 1")
}

// one returns the segment that a query finds, the zero one if it finds none.
func (l *Log) one(ctx context.Context, w log.Workspace, query string, more ...any) (log.Segment, error) {
	if err := w.Check(); err != nil {
		return log.Segment{}, err
	}
	var pos int64
	var data []byte
	args := append([]any{[]byte(w.Principal), []byte(w.Name)}, more...)
	err := l.pool.QueryRow(ctx, query, args...).Scan(&pos, &data)
	if errors.Is(err, pgx.ErrNoRows) {
		return log.Segment{}, nil
	}
	return log.Segment{Pos: log.Pos(pos), Data: data}, unknown(err)
}

// Read is [log.Log.Read].
func (l *Log) Read(ctx context.Context, w log.Workspace, from log.Pos) iter.Seq2[log.Segment, error] {
	return func(yield func(log.Segment, error) bool) {
		for {
			s, err := l.one(ctx, w, "select pos, data from toold_segments where principal = $1 and name = $2 and pos >= $3 order by pos limit 1", int64(from))
			if err == nil && s.Pos == 0 || !yield(s, err) || err != nil {
				return
			}
			from = s.Pos + 1
		}
	}
}

// Purge is [log.Log.Purge].
func (l *Log) Purge(ctx context.Context, w log.Workspace, before log.Pos) error {
	last, err := l.Last(ctx, w)
	if err == nil {
		err = log.CheckPurge(last, before)
	}
	if err != nil {
		return err
	}
	_, err = l.pool.Exec(ctx, "delete from toold_segments where principal = $1 and name = $2 and pos < $3", []byte(w.Principal), []byte(w.Name), int64(before))
	return unknown(err)
}

// unknown wraps an error after which it is not known whether anything was
// stored.
func unknown(err error) error {
	if err == nil {
		return nil
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == "40001" { // serialization_failure
		return log.ErrBusy
	}
	return fmt.Errorf("%w: %w", log.ErrUnknown, err)
}
