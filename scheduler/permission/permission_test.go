package permission_test

import (
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// TestDecide goes over the whole domain: every reach, with and without a reason of its own to ask, in every mode. The
// table's columns are the modes in their order; a allows, ? asks, x denies.
func TestDecide(t *testing.T) {
	table := []struct {
		reach         permission.Reach
		ask, critical string
		want          string
	}{
		{permission.ReadsInside, "", "", "aaaaa"},
		{permission.ReadsInside, "hard links", "", "???xa"},
		{permission.ReadsInside, "", "critical", "???x?"},
		{permission.ReadsInside, "hard links", "critical", "???x?"},
		{permission.ReadsOutside, "", "", "???xa"},
		{permission.ReadsOutside, "hard links", "", "???xa"},
		{permission.ReadsOutside, "", "critical", "???x?"},
		{permission.ReadsOutside, "hard links", "critical", "???x?"},
		{permission.WritesInside, "", "", "?axxa"},
		{permission.WritesInside, "hard links", "", "??xxa"},
		{permission.WritesInside, "", "critical", "??xx?"},
		{permission.WritesInside, "hard links", "critical", "??xx?"},
		{permission.WritesOutside, "", "", "??xxa"},
		{permission.WritesOutside, "hard links", "", "??xxa"},
		{permission.WritesOutside, "", "critical", "??xx?"},
		{permission.WritesOutside, "hard links", "critical", "??xx?"},
		{permission.Runs, "", "", "??xxa"},
		{permission.Runs, "hard links", "", "??xxa"},
		{permission.Runs, "", "critical", "??xx?"},
		{permission.Runs, "hard links", "critical", "??xx?"},
	}
	for _, row := range table {
		facts := permission.Facts{Reach: row.reach, Where: "there", Ask: row.ask, Critical: row.critical}
		for mode := permission.Default; mode <= permission.BypassPermissions; mode++ {
			got := permission.Decide(facts, mode)
			if want := decisions[row.want[mode]]; got.Decision != want {
				t.Errorf("%+v in mode %s: decision %d (%s), want %d", facts, mode, got.Decision, got.Reason, want)
			}
			if got.Reason == "" || got.Level == 0 {
				t.Errorf("%+v in mode %s: no reason or level in %+v", facts, mode, got)
			}
		}
	}
}

var decisions = map[byte]permission.Decision{'a': permission.Allow, '?': permission.Ask, 'x': permission.Deny}
