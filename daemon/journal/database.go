// The database: one connection, its prepared statements, transactions. Knows
// SQL; does not know about numbering, groups or readers.
//
// The connection locks the file for itself. That spares the shared-memory
// index and a dozen lock calls per transaction (14 us instead of 20 for one
// record, measured), needs one page cache instead of two, and keeps a second
// daemon out. The price is that reads and writes take turns; a reader that has
// caught up reads from memory and does not come here.

package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

type database struct {
	path string
	pool *sql.DB

	mu      sync.Mutex // held for one transaction or one query
	conn    *sql.Conn  // nil: closed
	reserve reserve
	damage  *CorruptError // the first that was met
	// prepared are the statements that have run, by their texts, of which there are only so many.
	prepared map[string]*sql.Stmt
}

// The statements that several functions run.
const (
	insertRecord = "insert into records (id, time, kind, call, prev, turn, body) values (?, ?, ?, ?, ?, ?, ?)"
	selectOldest = "select id, time, length(body) from records where id between ? and ? order by id limit ?"
	trimRecords  = "delete from records where id between ? and ?"
	setCount     = "update logs set bytes = ?, last = ? where id = ?"
	setState     = "insert into state (log, key, value) values (?, ?, ?) on conflict do update set value = excluded.value"
	setMeta      = "insert into meta (key, value) values (?, ?) on conflict do update set value = excluded.value"
)

// background is the context of every statement. SQLite interrupts a statement when its context
// ends, and half a transaction is useless.
var background = context.Background()

func connect(path string) (*database, error) {
	pool, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(background)
	if err != nil {
		_ = pool.Close() // there is no connection in it
		return nil, classify(path, err)
	}
	return &database{path: path, pool: pool, conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

// close ends the connection. SQLite then copies the write-ahead log into the
// database and deletes it, but only if no statement is left: those that were
// prepared on a connection, database/sql does not close by itself.
func (d *database) close() error {
	return d.locked(func() (err error) {
		for _, stmt := range d.prepared {
			err = cmp.Or(err, stmt.Close())
		}
		err = cmp.Or(err, d.conn.Close()) // returns it to the pool
		d.conn = nil
		return classify(d.path, cmp.Or(d.pool.Close(), err))
	})
}

// locked runs do with mu locked, unless the database is closed.
func (d *database) locked(do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return ErrClosed
	}
	return do()
}

// empty copies all of the write-ahead log into the database, and cuts it to
// nothing.
func (d *database) empty() error {
	return d.locked(func() error { return d.run("pragma wal_checkpoint(truncate)") })
}

// room is what a transaction may use when the disk is full.
type room uint8

const (
	common   room = iota // what is left
	reserved             // also what is kept for the ends of what has begun
)

// update runs change in one transaction: all of it is committed, or none. It
// runs change again when that needs the reserve. It is not synced.
func (d *database) update(r room, change func() error) error {
	return d.updateThen(r, change, func() {})
}

// updateThen calls then when all is committed, before others can read it.
func (d *database) updateThen(r room, change func() error, then func()) error {
	return d.locked(func() error {
		if r == common && !d.reserve.ensure() {
			return ErrFull
		}
		err := d.transact(change)
		if r == reserved && errors.Is(err, ErrFull) && d.reserve.release() {
			// What is in the write-ahead log goes into the database, so that its blocks
			// can be used again. If that fails there is still the room itself.
			_, _ = d.conn.ExecContext(background, "pragma wal_checkpoint(restart)")
			err = d.transact(change)
		}
		if err == nil {
			then()
		}
		return err
	})
}

func (d *database) transact(change func() error) error {
	if err := d.execLocked("begin immediate"); err != nil {
		return err
	}
	err := change()
	if err == nil {
		err = d.execLocked("commit")
	}
	if err != nil {
		// SQLite may have rolled back by itself, and then returns an error that has no meaning
		// here.
		_, _ = d.conn.ExecContext(background, "rollback")
	}
	return err
}

// prepare returns the statement of a text. The caller has locked mu.
func (d *database) prepare(text string) (stmt *sql.Stmt, err error) {
	if stmt = d.prepared[text]; stmt == nil {
		if stmt, err = d.conn.PrepareContext(background, text); err == nil {
			d.prepared[text] = stmt
		}
	}
	return stmt, err
}

// execLocked runs a statement that returns no rows. The caller has locked mu.
func (d *database) execLocked(text string, args ...any) error {
	stmt, err := d.prepare(text) //nolint:sqlclosecheck // it lives until close
	if err == nil {
		_, err = stmt.ExecContext(background, args...)
	}
	return d.notedLocked(classify(d.path, err))
}

// notedLocked remembers the first damage that was met, also beyond the end of the
// process: the next Open does not take the file for sound. The caller
// has locked mu.
func (d *database) notedLocked(err error) error {
	if corrupt, is := errors.AsType[*CorruptError](err); is && d.damage == nil {
		d.damage = corrupt
		suspect(d.path, err)
	}
	return err
}

// suspect marks the database, of which file is one, so that the next Open does
// not take it for sound. Without the mark the damage is met again.
func suspect(file string, err error) {
	_ = os.WriteFile(filepath.Join(filepath.Dir(file), suspectName), []byte(err.Error()+"\n"), 0o600)
}

// scanner reads the columns of the current row.
type scanner func(columns ...any) error

// query calls each for every row until it returns false or an error.
func (d *database) query(text string, each func(scanner) (bool, error), args ...any) error {
	return d.locked(func() error { return d.rowsLocked(text, each, args...) })
}

// rowsLocked is query for a caller that has locked mu.
func (d *database) rowsLocked(text string, each func(scanner) (bool, error), args ...any) error {
	stmt, err := d.prepare(text) //nolint:sqlclosecheck // it lives until close
	if err != nil {
		return d.notedLocked(classify(d.path, err))
	}
	rows, err := stmt.QueryContext(background, args...)
	if err != nil {
		return d.notedLocked(classify(d.path, err))
	}
	defer rows.Close()
	scan := func(columns ...any) error {
		if err := rows.Scan(columns...); err != nil {
			return d.notedLocked(&CorruptError{Path: d.path, Err: err}) // a column holds another type than we wrote
		}
		return nil
	}
	for rows.Next() {
		if more, err := each(scan); err != nil || !more {
			return err
		}
	}
	return d.notedLocked(classify(d.path, rows.Err()))
}
