package sqlitelog_test

import (
	"path/filepath"
	"testing"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/logtest"
	"github.com/toold/toold/cluster/log/sqlitelog"
)

func TestSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	logtest.Test(t, func(t testing.TB) log.Log {
		l, err := sqlitelog.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return l
	})
}
