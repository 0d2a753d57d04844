//go:build linux

package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toold/toold/cluster/backup"
	"github.com/toold/toold/cluster/gateway"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/natstest"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
)

// TestReuseAfterStrictEffects: the name of a workspace with strict effects is free again once what an owner runs must have ended, also
// when it was deleted before and had been given up.
func TestReuseAfterStrictEffects(t *testing.T) {
	for strict, want := range map[bool]time.Duration{true: node.StrictWait, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			store, w := lease.Store{Log: &log.Memory{}}, log.Workspace{Principal: "ann", Name: "w"}
			err := lease.Create(t.Context(), store, w, lease.Creation{StrictEffects: strict, Git: "/a"})
			for range 2 {
				err = errors.Join(err, lease.Delete(t.Context(), store, w))
			}
			begun := time.Now()
			err = errors.Join(err, renew(t.Context(), store, w))
			if waited := time.Since(begun); err != nil || waited != want {
				t.Errorf("strict effects %v: it has waited for %v, want %v: %v", strict, waited, want, err)
			}
			if view, err := lease.Open(t.Context(), store, w); err != nil || !view.IsNew() || view.Creation() != (lease.Creation{}) {
				t.Errorf("afterwards the workspace has %+v, %v", view.Creation(), err)
			}
		})
	}
}

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
