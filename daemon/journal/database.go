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
	"net/url"
	"sync"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

type database struct {
	path string
	pool *sql.DB

	mu         sync.Mutex // held for one transaction or one query
	conn       *sql.Conn  // nil: closed
	durability Durability // what PRAGMA synchronous stands at
	statements
	prepared []*sql.Stmt // all of them
}

type statements struct {
	begin, commit, rollback          *sql.Stmt
	insert, read, one, newest, scan  *sql.Stmt
	create, find, list, seal, remove *sql.Stmt
	skip, trim, setFirst             *sql.Stmt
	setState, unsetState, getState   *sql.Stmt
	clearState, getMeta, setMeta     *sql.Stmt
}

// background is what every statement runs under. SQLite interrupts a statement
// when its context ends, and half a transaction is of use to nobody.
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
	return &database{path: path, pool: pool, conn: conn, durability: Synced}, nil
}

// close ends the connection. SQLite then copies the write-ahead log into the
// database and deletes it, but only if no statement is left: those that were
// prepared on a connection, database/sql does not close by itself.
func (d *database) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return ErrClosed
	}
	var err error
	for _, stmt := range d.prepared {
		err = cmp.Or(err, stmt.Close())
	}
	err = cmp.Or(err, d.conn.Close()) // gives it back to the pool
	d.conn = nil
	return classify(d.path, cmp.Or(d.pool.Close(), err))
}

// update runs change in one transaction: all of it is committed, or none.
func (d *database) update(durability Durability, change func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return ErrClosed
	}
	if err := d.setDurability(durability); err != nil {
		return err
	}
	if err := d.exec(d.begin); err != nil {
		return err
	}
	err := change()
	if err == nil {
		err = d.exec(d.commit)
	}
	if err != nil {
		// SQLite may have rolled back by itself, and then says so: there is
		// nothing to be learnt from the outcome.
		_ = d.exec(d.rollback)
	}
	return err
}

// setDurability is called with mu held and outside of a transaction, where
// alone SQLite accepts it.
func (d *database) setDurability(want Durability) error {
	if d.durability == want {
		return nil
	}
	pragma := "pragma synchronous = normal"
	if want == Synced {
		pragma = "pragma synchronous = full"
	}
	if _, err := d.conn.ExecContext(background, pragma); err != nil {
		return classify(d.path, err)
	}
	d.durability = want
	return nil
}

// exec runs a statement that returns no rows; mu is held.
func (d *database) exec(stmt *sql.Stmt, args ...any) error {
	if _, err := stmt.ExecContext(background, args...); err != nil {
		return classify(d.path, err)
	}
	return nil
}

// scanner reads the columns of the current row.
type scanner func(columns ...any) error

// query calls each for every row until it returns false or an error.
func (d *database) query(stmt *sql.Stmt, each func(scanner) (bool, error), args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return ErrClosed
	}
	return d.rows(stmt, each, args...)
}

// rows is query for those who hold mu.
func (d *database) rows(stmt *sql.Stmt, each func(scanner) (bool, error), args ...any) error {
	rows, err := stmt.QueryContext(background, args...)
	if err != nil {
		return classify(d.path, err)
	}
	defer rows.Close()
	scan := func(columns ...any) error {
		if err := rows.Scan(columns...); err != nil {
			return &CorruptError{Path: d.path, Err: err} // a column holds another type than we wrote
		}
		return nil
	}
	for rows.Next() {
		if more, err := each(scan); err != nil || !more {
			return err
		}
	}
	return classify(d.path, rows.Err())
}
