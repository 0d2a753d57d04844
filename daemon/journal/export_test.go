// What the tests need to see or to bring about from inside: transactions, a
// full disk, a writer that is held up, time passing.

package journal

// OnCommit has f called at the end of every transaction, before it is
// committed.
func (s *Store) OnCommit(f func()) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	commit := s.db.commit
	s.db.commit = func() error {
		f()
		return commit()
	}
}

// Stall holds the writer up until release is called.
func (s *Store) Stall() (release func()) {
	s.db.mu.Lock()
	return s.db.mu.Unlock
}

// HoldSyncs holds every sync up, of which asked tells, until release is called;
// then they end with fail.
func (s *Store) HoldSyncs(fail error) (asked chan struct{}, release func()) {
	asked, gate := make(chan struct{}, 100), make(chan struct{})
	s.syncs.mu.Lock()
	defer s.syncs.mu.Unlock()
	s.syncs.sync = func() error {
		asked <- struct{}{}
		<-gate
		return fail
	}
	return asked, func() { close(gate) }
}

// Pragma runs a pragma and returns what it says.
func (s *Store) Pragma(text string) (value int, err error) {
	err = s.ask("pragma "+text, &value)
	return value, err
}

// ask reads the first columns of the first row.
func (s *Store) ask(text string, columns ...any) error {
	return s.db.query(text, func(scan scanner) (bool, error) { return false, scan(columns...) })
}

// Sweep is one turn of the sweep; it returns how many call tables are left.
func (s *Store) Sweep() int { return s.sweep() }

// TailLen returns how many records the log keeps in memory.
func (l *Log) TailLen() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tail)
}

// Rows returns how many records are in the database, of all logs.
func (s *Store) Rows() (n int, err error) {
	err = s.ask("select count(*) from records", &n)
	return n, err
}

// Intact returns what SQLite says of the whole database: "ok", or what is wrong.
func (s *Store) Intact() (verdict string, err error) {
	err = s.ask("pragma integrity_check", &verdict)
	return verdict, err
}

// ScanFile reads every row that can be found in a database file page by page, and
// returns how many there are.
func ScanFile(path string) (rows int, err error) {
	d, err := connect(path)
	if err != nil {
		return 0, err
	}
	defer d.close()
	p, err := scanPages(d)
	if err != nil {
		return 0, err
	}
	for _, id := range p.ids {
		if r, err := p.read(id); err == nil && r.row == id {
			rows++
		}
	}
	return rows, p.close()
}

// Known is how many logs are kept in memory.
func (s *Store) Known() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.logs)
}

// Trust makes a look at the directory enough for Present, as it is when nothing
// has changed there for long.
func (s *Store) Trust() error {
	state, err := stateOf(s.files.dir)
	s.files.trust(state)
	return err
}
