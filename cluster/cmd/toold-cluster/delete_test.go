//go:build linux

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/toold/toold/cluster/backup"
	"github.com/toold/toold/cluster/gateway"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/natstest"
	"github.com/toold/toold/cluster/objects"
)

// TestDeleteOfAnEntry: what stands in the index of a workspace that has no log is removed, and a name that nothing knows is
// an error.
func TestDeleteOfAnEntry(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	entries := `{"principal": "ann", "workspace": "w"} {"principal": "ann", "workspace": "w", "session": "s"} {"principal": "ann", "workspace": "other"}`
	if err := gateway.ImportIndex(t.Context(), js, 1, strings.NewReader(entries)); err != nil {
		t.Fatal(err)
	}
	place, w := backup.Place{Log: &log.Memory{}, Objects: objects.Dir(t.TempDir())}, log.Workspace{Principal: "ann", Name: "w"}
	if err := remove(t.Context(), js, place, w, false); err != nil {
		t.Error(err)
	}
	var left strings.Builder
	if err := gateway.ExportIndex(t.Context(), js, &left); err != nil || left.String() != `{"principal":"ann","workspace":"other"}`+"\n" {
		t.Errorf("the index has %q, %v", left.String(), err)
	}
	if err := remove(t.Context(), js, place, w, false); !errors.Is(err, lease.ErrNone) {
		t.Errorf("once more: %v", err)
	}
}
