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
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"
)

type database struct {
	path string

	mu      sync.Mutex    // held for one transaction or one query
	conn    *sqlite.Conn  // nil: closed; keeps the prepared statements, by their texts, of which there are only so many
	commit  func() error  // ends a transaction
	reserve *reserve      // that of the store; without one nothing is kept
	damage  *CorruptError // the first that was met
}

// The statements that several functions run.
const (
	insertRecord = "insert into records (id, time, kind, call, prev, turn, note, body) values (?, ?, ?, ?, ?, ?, ?, ?)"
	selectOldest = "select id, time, length(body) from records where id between ? and ? order by id limit ?"
	trimRecords  = "delete from records where id between ? and ?"
	setCount     = "update logs set bytes = ?, last = ? where id = ?"
	setState     = "insert or replace into state (log, key, value, at) values (?, ?, ?, ?)" // one look into the tree; an upsert takes two
	setMeta      = "insert into meta (key, value) values (?, ?) on conflict do update set value = excluded.value"
)

func connect(path string) (*database, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, classify(path, err)
	}
	conn.SetBusyTimeout(0) // another process that has the file open keeps it
	d := &database{path: path, conn: conn, reserve: &reserve{}}
	d.commit = func() error { return d.execLocked("commit") }
	return d, nil
}

// close ends the connection. SQLite then copies the write-ahead log into the
// database and deletes it.
func (d *database) close() error {
	return d.locked(func() error {
		err := d.conn.Close()
		d.conn = nil
		return classify(d.path, err)
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
			_ = d.run("pragma wal_checkpoint(restart)")
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
		err = d.commit()
	}
	if err != nil {
		// SQLite may have rolled back by itself, and then returns an error that has no meaning
		// here.
		_, _ = d.step("rollback")
	}
	return err
}

// execLocked runs a statement that returns no rows. The caller has locked mu.
func (d *database) execLocked(text string, args ...any) error {
	stmt, err := d.bind(text, args)
	if err == nil {
		_, err = stmt.Step()
		err = cmp.Or(err, stmt.Reset())
	}
	return d.notedLocked(classify(d.path, err))
}

// bind returns the statement of a text with its arguments, which it does not
// keep. The caller has locked mu.
func (d *database) bind(text string, args []any) (*sqlite.Stmt, error) {
	stmt, err := d.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	for i, arg := range args {
		switch arg := arg.(type) {
		case nil:
			stmt.BindNull(i + 1)
		case int:
			stmt.BindInt64(i+1, int64(arg))
		case int64:
			stmt.BindInt64(i+1, arg)
		case uint64:
			stmt.BindInt64(i+1, int64(arg))
		case string:
			stmt.BindText(i+1, arg)
		case []byte:
			stmt.BindBytes(i+1, arg) // also nil is empty, and not null
		default:
			panic("BUG: an argument of a type that is not bound")
		}
	}
	return stmt, nil
}

// largeBody is from how many bytes on a body is streamed into its row: binding
// copies it byte by byte, streaming costs a lookup.
const largeBody = 3 << 10

// insertLocked writes a record, with the number of the one before it of the same call,
// or 0. The caller has locked mu.
func (d *database) insertLocked(r *saved, before uint64) error {
	large := len(r.Body) >= largeBody
	err := d.insertRow(r, before, large)
	if err == nil && large {
		var body *sqlite.Blob
		if body, err = d.conn.OpenBlob("main", "records", "body", r.row, true); err == nil {
			_, err = body.Write(r.Body)
			err = cmp.Or(err, body.Close())
		}
	}
	return d.notedLocked(classify(d.path, err))
}

// insertRow writes a row, with zeros for a body that is streamed into it afterwards. It binds by
// itself, since it runs three times for each call.
func (d *database) insertRow(r *saved, before uint64, large bool) error {
	stmt, err := d.conn.Prepare(insertRecord)
	if err != nil {
		return err
	}
	for i, number := range [...]int64{r.row, r.at, int64(r.Kind)} {
		stmt.BindInt64(i+1, number)
	}
	stmt.BindText(4, r.Call)
	stmt.BindInt64(5, int64(before))
	stmt.BindInt64(6, int64(r.Turn))
	if r.note == nil {
		stmt.BindNull(7)
	} else {
		stmt.BindBytes(7, r.note)
	}
	if large {
		stmt.BindZeroBlob(8, int64(len(r.Body)))
	} else {
		stmt.BindBytes(8, r.Body) // also nil is empty, and not null
	}
	_, err = stmt.Step()
	return cmp.Or(err, stmt.Reset())
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

// scanner reads the columns of the current row, the first ones, as they were
// written: int64, uint64, int and Kind from integers, string from text, []byte
// from blobs. A []byte is the caller's; it is nil for null only.
type scanner func(columns ...any) error

// query calls each for every row until it returns false or an error.
func (d *database) query(text string, each func(scanner) (bool, error), args ...any) error {
	return d.locked(func() error { return d.rowsLocked(text, each, args...) })
}

// rowsLocked is query for a caller that has locked mu.
func (d *database) rowsLocked(text string, each func(scanner) (bool, error), args ...any) error {
	stmt, err := d.bind(text, args)
	if err != nil {
		return d.notedLocked(classify(d.path, err))
	}
	defer func() { _ = stmt.Reset() }() // returns what Step has returned
	scan := func(columns ...any) error {
		for i, into := range columns {
			if !column(stmt, i, into) {
				return d.notedLocked(&CorruptError{Path: d.path, Err: fmt.Errorf("column %d holds another type than was written", i)})
			}
		}
		return nil
	}
	for {
		row, err := stmt.Step()
		if err != nil {
			return d.notedLocked(classify(d.path, err))
		}
		if !row {
			return nil
		}
		if more, err := each(scan); err != nil || !more {
			return err
		}
	}
}

// column reads a column of the current row, and reports whether it has the type
// of into and a value that it can hold.
func column(stmt *sqlite.Stmt, i int, into any) bool {
	held, number := stmt.ColumnType(i), stmt.ColumnInt64(i)
	switch into := into.(type) {
	case *int64:
		*into = number
	case *uint64:
		*into = uint64(number)
		return held == sqlite.TypeInteger && number >= 0
	case *int:
		*into = int(number)
	case *Kind:
		*into = Kind(number)
		return held == sqlite.TypeInteger && number >= 0 && number <= math.MaxUint8
	case *string:
		*into = stmt.ColumnText(i)
		return held == sqlite.TypeText
	case *[]byte:
		*into = nil
		if held != sqlite.TypeNull {
			*into = make([]byte, stmt.ColumnLen(i))
			stmt.ColumnBytes(i, *into)
		}
		return held == sqlite.TypeBlob || held == sqlite.TypeNull
	default:
		panic("BUG: a column of a type that is not read")
	}
	return held == sqlite.TypeInteger
}

// run executes a script; what it has left open is rolled back if it fails. The
// caller has locked mu, or opens the database.
func (d *database) run(script string) error {
	for script = strings.TrimSpace(script); script != ""; {
		left, err := d.step(script)
		if err != nil {
			_, _ = d.step("rollback") // an error means that no transaction is open
			return classify(d.path, err)
		}
		script = strings.TrimSpace(script[len(script)-left:])
	}
	return nil
}

// step executes the first statement of a script to its end, without keeping it,
// and returns how many bytes follow it.
func (d *database) step(script string) (left int, err error) {
	stmt, left, err := d.conn.PrepareTransient(script)
	if err != nil {
		return 0, err
	}
	for row := true; row && err == nil; {
		row, err = stmt.Step()
	}
	return left, cmp.Or(err, stmt.Finalize())
}

// value reads the one number of a pragma. The caller has locked mu, or opens
// the database.
func (d *database) value(pragma string, into *int64) error {
	return d.rowsLocked(pragma, func(scan scanner) (bool, error) { return false, scan(into) })
}
