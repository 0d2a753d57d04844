// Salvage: what can be read of a damaged database goes into a new one. Does not
// know what damaged it.
//
// SQLite notices a damaged page when it reads it. Rows are read in their order up
// to such a page, then from beyond it, and then backwards up to it from the other
// side (walk.go). Records that the tree does not lead to any more are looked for
// in all pages (scan.go). A byte that is wrong inside of a body goes unnoticed: the
// format has no sums over pages.

package journal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const (
	newSuffix   = ".new"     // a salvaged database that is whole
	partSuffix  = ".salvage" // one that is being written
	suspectName = "suspect"  // its existence means that damage was met
	salvageStep = 1000       // rows in one transaction
)

// A Salvaged is the outcome of salvaging a damaged database.
type Salvaged struct {
	Aside string // where the damaged file is kept
	Logs  int    // that are there again
	Lost  []Loss // what they lack
}

// A Loss is what one log has lost.
type Loss struct {
	Log  string
	Gaps []Gap
	// Tail: there may have been newer records than the newest that is there.
	Tail bool
	// State: some of the table of the session's state is lost. Notes of calls are lost with their records.
	State bool
}

// Salvage puts a new database in the place of the damaged one in dir, with all of
// it that can be read, and keeps the damaged file under another name. No store may
// have it open. The numbering gets a new epoch. Killed at any point it leaves a
// database that can be opened or salvaged again. A [*CorruptError] says that
// nothing can be read: [SetAside] is what is left.
func Salvage(dir string) (*Salvaged, error) {
	path, aside := asideOf(dir)
	part := path + partSuffix
	report, err := salvage(path, part, aside)
	if err != nil { // as on a full disk
		return nil, errors.Join(err, removeAll(part, aside))
	}
	report.Aside = aside
	if err := os.Rename(part, path+newSuffix); err != nil {
		return nil, err
	}
	return report, finishSalvage(dir)
}

// salvage copies the damaged files, since SQLite may change those that it reads,
// and writes what it can read into part.
func salvage(path, part, aside string) (*Salvaged, error) {
	if err := copyFile(path, aside); err != nil {
		return nil, err
	}
	if err := ignoreMissing(copyFile(path+"-wal", aside+"-wal")); err != nil {
		return nil, err
	}
	if err := removeAll(part); err != nil { // an earlier attempt's
		return nil, err
	}
	return salvageInto(path, part)
}

// removeAll removes databases with their logs, as far as they are there.
func removeAll(databases ...string) (err error) {
	for _, path := range databases {
		err = errors.Join(err, ignoreMissing(os.Remove(path)), ignoreMissing(os.Remove(path+"-wal")))
	}
	return err
}

// finishSalvage puts a database that was salvaged as a whole into its place.
func finishSalvage(dir string) error {
	path := filepath.Join(dir, fileName)
	if err := removeAll(path + pagesSuffix); err != nil { // of an attempt that was killed
		return err
	}
	if _, err := os.Stat(path + newSuffix); err != nil {
		return ignoreMissing(err)
	}
	if err := ignoreMissing(os.Remove(path + "-wal")); err != nil { // before: it would be taken for the new one's
		return err
	}
	if err := ignoreMissing(os.Remove(filepath.Join(dir, suspectName))); err != nil {
		return err
	}
	if err := os.Rename(path+newSuffix, path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// salvageInto reads the one database and writes the other, which is on the disk
// when it returns.
func salvageInto(path, part string) (*Salvaged, error) {
	old, err := connect(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = old.close() }() // nothing of it is needed any more
	// With a writable schema a file that was cut off can be read as far as it goes.
	err = old.run("pragma locking_mode = exclusive; pragma writable_schema = on; pragma cell_size_check = on; pragma trusted_schema = off")
	if err != nil {
		return nil, err
	}
	_ = old.run("pragma wal_checkpoint(truncate)") // so that the pages are in one file; if not, there are fewer to scan
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	into, err := openDatabase(part)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	s := salvaging{old: old, into: into, report: &Salvaged{}}
	err = s.logs()
	if s.pages != nil {
		_ = s.pages.close() // it was only read
	}
	if err == nil {
		err = into.update(common, func() error { return into.execLocked(setMeta, metaEpoch, rand.Text()) })
	}
	return s.report, errors.Join(err, into.close())
}

// salvaging is one under way.
type salvaging struct {
	old, into *database
	version   int64 // of the old one
	report    *Salvaged
	pages     *pages // of the old one; nil: not needed yet
}

// since returns the column if the old database has it, which came with version; else what stands for it.
func (s *salvaging) since(version int64, column, otherwise string) string {
	if s.version < version {
		return otherwise
	}
	return column
}

// found is a log whose description could be read.
type found struct {
	id, created, sealed int64
	first               uint64
	last                int64 // below 0: not known
	name                string
}

// logs saves every log that can be found.
func (s *salvaging) logs() error {
	if err := s.old.value("pragma user_version", &s.version); err != nil {
		return err
	}
	var all []found
	w := walk{db: s.old, columns: "id, name, created, sealed, first, " + s.since(2, "ifnull(last, -1)", "-1"), table: "logs", low: 1, high: maxLog}
	broken := w.run(func(scan scanner) (int64, error) {
		var f found
		err := scan(&f.id, &f.name, &f.created, &f.sealed, &f.first, &f.last)
		if err == nil {
			err = s.old.checkLog(f.id, f.first)
		}
		if err == nil {
			all = append(all, f)
		}
		return f.id, err
	})
	if len(all) == 0 && broken != nil {
		return broken
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.id, b.id) })
	all = slices.CompactFunc(all, func(a, b found) bool { return a.id == b.id })
	names := map[string]bool{}
	for _, f := range all {
		if names[f.name] {
			continue
		}
		names[f.name] = true
		if err := s.log(f); err != nil {
			return err
		}
		s.report.Logs++
	}
	return nil
}

// log saves one log. Its errors are those of writing; what cannot be read is a
// loss.
func (s *salvaging) log(f found) error {
	loss := Loss{Log: f.name}
	last, err := s.records(f, &loss)
	if err != nil {
		return err
	}
	state := s.state(f.id, &loss)
	if len(loss.Gaps) > 0 || loss.Tail || loss.State {
		s.report.Lost = append(s.report.Lost, loss)
	}
	return s.into.update(common, func() error {
		err := s.into.execLocked("insert into logs (id, name, created, sealed, first) values (?, ?, ?, ?, ?)", f.id, f.name, f.created, f.sealed, int64(f.first))
		for _, g := range loss.Gaps {
			if err == nil {
				err = s.into.execLocked("insert into gaps (log, first, last) values (?, ?, ?)", f.id, int64(g.First), int64(g.Last))
			}
		}
		for key, put := range state {
			if err == nil {
				err = s.into.execLocked(setState, f.id, key, put.value, min(put.at, last)) // numbers above are given again
			}
		}
		return err
	})
}

// state reads that of a log, from both ends as far as it can be read.
func (s *salvaging) state(log int64, loss *Loss) map[string]noted {
	values := map[string]noted{}
	for _, order := range []string{"asc", "desc"} {
		err := s.old.rowsLocked("select key, value, "+s.since(3, "at", "0")+" from state where log = ? order by key "+order, func(scan scanner) (bool, error) {
			var key string
			var put noted
			err := scan(&key, &put.value, &put.at)
			if err == nil {
				values[key] = put
			}
			return true, err
		}, log)
		if err == nil {
			break
		}
		loss.State = true
	}
	return values
}
