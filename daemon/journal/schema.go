// The schema: creating it, checking that it is ours, preparing the statements, and the epoch.

package journal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	schemaVersion = 3
	applicationID = 0x746f6f6c // "tool", in the header of the file
)

// A record's id is its log's id and its number in one integer: appending to
// the table's own tree is the one write that an insert costs. An index over
// call would make a single append half as dear again (23 us instead of 14,
// measured); instead prev links the records of one call, see calls.go.
//
// What is trimmed is given back to the file system page by page (trim.go),
// which SQLite has to be told before the first table is there.
const schema = `
create table meta (key text primary key, value text not null) without rowid;
create table logs (
	id      integer primary key autoincrement,
	name    text    not null unique,
	created integer not null,            -- nanoseconds since 1970, as all times
	sealed  integer not null default 0,
	first   integer not null default 1,  -- the oldest number that is kept
	bytes   integer,                     -- of a sealed log, as Log.Bytes; null: not counted
	last    integer                      -- of a sealed log; null: look at its records
);
create table records (
	id   integer primary key,            -- logs.id << 36 | number
	time integer not null,
	kind integer not null,
	call text    not null,
	prev integer not null,               -- number of the record before of the same call, or 0
	turn integer not null,
	note blob,                           -- null: it has none
	body blob    not null
);
create table state (
	log   integer not null,
	key   text    not null,
	value blob    not null,
	at    integer not null default 0,    -- number of the record it came with, or of the newest when it came without
	primary key (log, key)
) without rowid;
create table gaps (                      -- numbers that damage has taken
	log   integer not null,
	first integer not null,
	last  integer not null,
	primary key (log, first)
) without rowid;
pragma application_id = %d;
pragma user_version = %d;`

// everyColumn fails if a table or a column is missing, and reads nothing.
const everyColumn = `select m.key, m.value, l.id, l.name, l.created, l.sealed, l.first, l.bytes, l.last,
	r.id, r.time, r.kind, r.call, r.prev, r.turn, r.note, r.body, s.log, s.key, s.value, s.at, g.log, g.first, g.last
	from meta m, logs l, records r, state s, gaps g limit 0`

// seqBits is the width of a number within a record's id.
const seqBits = 36

const (
	maxSeq = 1<<seqBits - 1
	maxLog = 1<<(63-seqBits) - 1
)

const (
	// checkpointPages is at how many pages the write-ahead log is copied into the
	// database. SQLite's own 1000 makes a hundred sessions that append durably a
	// quarter slower: each record is on another page.
	checkpointPages = 4000
	// logLimit is what the write-ahead log is cut to after it has grown beyond it,
	// in bytes: above checkpointPages, so that its blocks are used again.
	logLimit = 24 << 20
)

// openDatabase opens or creates the database at path and prepares everything.
func openDatabase(path string) (*database, error) {
	d, err := connect(path)
	if err != nil {
		return nil, err
	}
	if err := d.initialize(); err != nil {
		_ = d.close() // err has the reason
		return nil, err
	}
	return d, nil
}

func (d *database) initialize() error {
	// The locking mode comes before the first access: the log's index is then kept on the heap.
	// That free pages are to be returned is set in a new file only: in another the pragma would
	// write, which a full disk does not allow.
	var pages int64
	err := cmp.Or(d.run("pragma locking_mode = exclusive"), d.value("pragma page_count", &pages))
	if err == nil && pages == 0 {
		err = d.run("pragma auto_vacuum = incremental")
	}
	if err == nil {
		err = d.run(fmt.Sprintf(`pragma journal_mode = wal;
			pragma synchronous = full;
			pragma cell_size_check = on; -- a damaged page is noticed when it is read
			pragma trusted_schema = off;
			pragma wal_autocheckpoint = %d;
			pragma journal_size_limit = %d`, checkpointPages, logLimit))
	}
	if err == nil {
		err = d.ensureSchema()
	}
	if err == nil {
		err = d.run(everyColumn)
	}
	return err
}

// ensureSchema creates the tables in an empty file, and refuses a file that
// is another program's or a newer toold's.
func (d *database) ensureSchema() error {
	var application, version, objects int
	const text = "select application_id, user_version, (select count(*) from sqlite_schema) from pragma_application_id, pragma_user_version"
	err := d.rowsLocked(text, func(scan scanner) (bool, error) { return false, scan(&application, &version, &objects) })
	switch {
	case err != nil:
		return err
	case application == 0 && version == 0 && objects == 0:
		return d.run("begin immediate;" + fmt.Sprintf(schema, applicationID, schemaVersion) + "commit;")
	case application != applicationID || version < 1:
		return &CorruptError{Path: d.path, Err: fmt.Errorf("application id %#x, version %d", application, version)}
	case version > schemaVersion:
		return &VersionError{Path: d.path, Found: version, Known: schemaVersion}
	case version < schemaVersion:
		return d.migrate(version)
	}
	return nil
}

// migrations lead from each version to the next.
var migrations = map[int]string{
	1: `alter table logs add column bytes integer;
		alter table logs add column last integer;
		create table gaps (log integer not null, first integer not null, last integer not null, primary key (log, first)) without rowid;`,
	2: `alter table records add column note blob;
		alter table state add column at integer not null default 0;`,
}

// migrate brings a database of an older version to this version. One of version 1 is first
// rewritten, so that its free pages can be given back; that needs as much room again, and where
// there is none the database does without. Killed at any point it begins again.
func (d *database) migrate(version int) error {
	if version == 1 {
		if err := d.run("pragma auto_vacuum = incremental; vacuum"); err != nil && !errors.Is(err, ErrFull) {
			return err
		}
	}
	script := "begin immediate;"
	for ; version < schemaVersion; version++ {
		script += migrations[version]
	}
	return d.run(script + fmt.Sprintf("pragma user_version = %d; commit;", schemaVersion))
}

const (
	metaEpoch = "epoch"
	metaBoot  = "boot" // the boot of the machine in which the database was opened; "" once it was closed
)

// openEpoch returns the epoch of the database and marks the database as open.
// Numbers that were never synced may be given again after a loss of power: if
// the database was not closed and the machine has been started since, the
// epoch is a new one.
func (d *database) openEpoch(first string) (epoch string, err error) {
	boot := bootID()
	err = d.update(reserved, func() error {
		was, err := d.meta(metaBoot)
		if err != nil {
			return err
		}
		if epoch, err = d.meta(metaEpoch); err != nil {
			return err
		}
		if fresh := epoch == ""; fresh || was != "" && was != boot {
			if epoch = first; !fresh || first == "" {
				epoch = rand.Text()
			}
			if err := d.execLocked(setMeta, metaEpoch, epoch); err != nil {
				return err
			}
		}
		if was == boot { // nothing to write, which works on a full disk too
			return nil
		}
		return d.execLocked(setMeta, metaBoot, boot)
	})
	return epoch, err
}

// closeEpoch marks the database as closed.
func (d *database) closeEpoch() error {
	return d.update(reserved, func() error { return d.execLocked(setMeta, metaBoot, "") })
}

// meta returns the value of a key, "" if it has none; within update.
func (d *database) meta(key string) (value string, err error) {
	err = d.rowsLocked("select value from meta where key = ?", func(scan scanner) (bool, error) { return false, scan(&value) }, key)
	return value, err
}

// bootID identifies this boot of the machine. Where the system does not tell,
// every opening counts as a boot of its own, which at worst costs a client a
// replay.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if errors.Is(err, os.ErrNotExist) || len(b) == 0 {
		return rand.Text()
	}
	return strings.TrimSpace(string(b))
}
