package daemon

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/daemon/checkpoint"
)

// TestOverdue: the rows of an open session stay within their bytes, the oldest go first; those of a call that runs stay.
func TestOverdue(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_000_000, 0)
	rows := func() (rows []stored) {
		for n := range 5 {
			row := &checkpoint.Row{Key: fmt.Sprint(n), Start: start.Add(time.Duration(n) * time.Hour), Ended: n != 1}
			rows = append(rows, stored{row, keptRows / 3})
		}
		return rows
	}
	for _, test := range []struct {
		oldest time.Time
		open   bool
		want   []string
	}{
		{start, true, []string{"4", "3", "2", "1"}},
		{start, false, []string{"4", "3", "2", "1", "0"}},
		{start.Add(3 * time.Hour), true, []string{"4", "3", "1"}},
		{start.Add(4 * time.Hour), false, []string{"4", "1"}},
	} {
		kept, gone := overdue(rows(), test.oldest, test.open)
		var keys []string
		for _, row := range kept {
			keys = append(keys, row.Key)
		}
		if !slices.Equal(keys, test.want) || len(kept)+len(gone) != 5 {
			t.Errorf("%+v: %q stay and %d go", test, keys, len(gone))
		}
	}
}
