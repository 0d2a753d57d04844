// The schema: creating it, checking that it is ours, preparing the statements,
// and the epoch. Does not know who uses the statements.

package journal

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	schemaVersion = 1
	applicationID = 0x746f6f6c // "tool", in the header of the file
)

// A record's id is its log's id and its number in one integer: appending to
// the table's own tree is the one write that an insert costs. An index over
// call would make a single append half as dear again (23 us instead of 14,
// measured); instead prev links the records of one call, see calls.go.
const schema = `
create table meta (key text primary key, value text not null) without rowid;
create table logs (
	id      integer primary key autoincrement,
	name    text    not null unique,
	created integer not null,            -- nanoseconds since 1970, as all times
	sealed  integer not null default 0,
	first   integer not null default 1   -- the oldest number that is kept
);
create table records (
	id   integer primary key,            -- logs.id << 36 | number
	time integer not null,
	kind integer not null,
	call text    not null,
	prev integer not null,               -- number of the record before of the same call, or 0
	turn integer not null,
	body blob    not null
);
create table state (
	log   integer not null,
	key   text    not null,
	value blob    not null,
	primary key (log, key)
) without rowid;
pragma application_id = %d;
pragma user_version = %d;`

// seqBits is the width of a number within a record's id.
const seqBits = 36

const (
	maxSeq = 1<<seqBits - 1
	maxLog = 1<<(63-seqBits) - 1
)

// openDatabase opens or creates the database at path and prepares everything.
func openDatabase(path string) (*database, error) {
	d, err := connect(path)
	if err != nil {
		return nil, err
	}
	if err := d.initialize(); err != nil {
		_ = d.close() // err says why
		return nil, err
	}
	return d, nil
}

func (d *database) initialize() error {
	for _, pragma := range []string{
		"pragma locking_mode = exclusive", // before the first access: the log's index is then kept on the heap
		"pragma journal_mode = wal",
		"pragma synchronous = full",
		"pragma cell_size_check = on", // a damaged page is noticed when it is read
		"pragma trusted_schema = off",
	} {
		if _, err := d.conn.ExecContext(background, pragma); err != nil {
			return classify(d.path, err)
		}
	}
	if err := d.ensureSchema(); err != nil {
		return err
	}
	return d.prepare()
}

// ensureSchema creates the tables in an empty file, and refuses a file that
// is another program's or a newer toold's.
func (d *database) ensureSchema() error {
	var application, version, objects int
	err := d.conn.QueryRowContext(background,
		"select application_id, user_version, (select count(*) from sqlite_schema) from pragma_application_id, pragma_user_version",
	).Scan(&application, &version, &objects)
	switch {
	case err != nil:
		return classify(d.path, err)
	case application == 0 && version == 0 && objects == 0:
		return d.createSchema()
	case application != applicationID || version < 1:
		return &CorruptError{Path: d.path, Err: fmt.Errorf("application id %#x, version %d", application, version)}
	case version > schemaVersion:
		return &VersionError{Path: d.path, Found: version, Known: schemaVersion}
	}
	return nil
}

func (d *database) createSchema() error {
	_, err := d.conn.ExecContext(background, "begin immediate;"+fmt.Sprintf(schema, applicationID, schemaVersion)+"commit;")
	if err != nil {
		_, _ = d.conn.ExecContext(background, "rollback") // nothing is open if begin failed
	}
	return classify(d.path, err)
}

func (d *database) prepare() error {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&d.begin, "begin immediate"},
		{&d.commit, "commit"},
		{&d.rollback, "rollback"},
		{&d.insert, "insert into records (id, time, kind, call, prev, turn, body) values (?, ?, ?, ?, ?, ?, ?)"},
		{&d.read, "select id, time, kind, call, turn, body from records where id between ? and ? order by id"},
		{&d.one, "select time, kind, call, prev, turn, body from records where id = ?"},
		{&d.newest, "select id from records where id between ? and ? order by id desc limit 1"},
		{&d.scan, "select id, call from records where id between ? and ? order by id limit ?"},
		{&d.create, "insert into logs (name, created) values (?, ?) returning id"},
		{&d.find, "select id, sealed, first from logs where name = ?"},
		{&d.list, "select id, name, created, sealed, first from logs order by created, id"},
		{&d.seal, "update logs set sealed = ? where id = ?"},
		{&d.remove, "delete from logs where id = ?"},
		{&d.skip, "select id from records where id between ? and ? order by id limit 1 offset ?"},
		{&d.trim, "delete from records where id between ? and ?"},
		{&d.setFirst, "update logs set first = max(first, ?) where id = ?"},
		{&d.setState, "insert into state (log, key, value) values (?, ?, ?) on conflict do update set value = excluded.value"},
		{&d.unsetState, "delete from state where log = ? and key = ?"},
		{&d.getState, "select key, value from state where log = ? and key >= ? order by key"},
		{&d.clearState, "delete from state where log = ?"},
		{&d.getMeta, "select value from meta where key = ?"},
		{&d.setMeta, "insert into meta (key, value) values (?, ?) on conflict do update set value = excluded.value"},
	} {
		stmt, err := d.conn.PrepareContext(background, p.text) //nolint:sqlclosecheck // it lives until close
		if err != nil {
			return classify(d.path, err)
		}
		*p.stmt = stmt
		d.prepared = append(d.prepared, stmt)
	}
	return nil
}

const (
	metaEpoch = "epoch"
	metaBoot  = "boot" // the boot of the machine in which the database was opened; "" once it was closed
)

// openEpoch returns the epoch of the database and marks the database as open.
// Numbers that were never synced may be given again after a loss of power: if
// the database was not closed and the machine has been started since, the
// epoch is a new one.
func (d *database) openEpoch() (epoch string, err error) {
	boot := bootID()
	err = d.update(Synced, func() error {
		was, err := d.meta(metaBoot)
		if err != nil {
			return err
		}
		if epoch, err = d.meta(metaEpoch); err != nil {
			return err
		}
		if epoch == "" || was != "" && was != boot {
			epoch = rand.Text()
			if err := d.exec(d.setMeta, metaEpoch, epoch); err != nil {
				return err
			}
		}
		return d.exec(d.setMeta, metaBoot, boot)
	})
	return epoch, err
}

// closeEpoch marks the database as closed.
func (d *database) closeEpoch() error {
	return d.update(Synced, func() error { return d.exec(d.setMeta, metaBoot, "") })
}

// meta returns the value of a key, "" if it has none; within update.
func (d *database) meta(key string) (value string, err error) {
	err = d.rows(d.getMeta, func(scan scanner) (bool, error) { return false, scan(&value) }, key)
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
