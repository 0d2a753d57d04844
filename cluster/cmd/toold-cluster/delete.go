//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cluster/backup"
	"github.com/toold/toold/cluster/gateway"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
)

func deleteCommand() *cobra.Command {
	var a admin
	var reuse bool
	cmd := &cobra.Command{
		Use: "delete PRINCIPAL WORKSPACE", Short: "Delete a workspace with its sessions and files", Args: cobra.ExactArgs(2),
		Long: "Deletes a workspace: its log, its objects, and its sessions in the index. What runs in it is killed within a minute. " +
			"A mark stays, so that clients that use it are refused and do not begin it again, until \"delete --reuse\".",
		Example: "  toold-cluster delete token:alice project --objects https://s3.example/toold",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		w := log.Workspace{Principal: args[0], Name: args[1]}
		return a.withStores(cmd.Context(), func(js jetstream.JetStream, place backup.Place) error {
			return remove(cmd.Context(), js, place, w, reuse)
		})
	}
	cmd.Flags().BoolVar(&reuse, "reuse", false, "let the name be used again, for an empty workspace")
	a.addObjects(cmd)
	return a.flags(cmd)
}

// remove deletes a workspace. What an earlier try has left is deleted as well, and what stands in the index of a workspace that
// was never begun.
func remove(ctx context.Context, js jetstream.JetStream, place backup.Place, w log.Workspace, reuse bool) error {
	store := lease.Store{Log: place.Log}
	missing := lease.Delete(ctx, store, w)
	if missing != nil && !errors.Is(missing, lease.ErrNone) {
		return missing
	}
	listed, err := gateway.RemoveFromIndex(ctx, js, w.Principal, w.Name)
	if missing != nil {
		if err == nil && !listed {
			err = fmt.Errorf("the workspace %q of %q: %w; \"toold-cluster sessions\" lists them", w.Name, w.Principal, missing)
		}
		return err // a node that has just begun may have objects
	}
	own := objects.Below(place.Objects, w.ID()+"/")
	for name, failed := range own.List(ctx, "") {
		if failed == nil {
			failed = own.Delete(ctx, name)
		}
		err = errors.Join(err, failed)
	}
	if err != nil || !reuse {
		return err
	}
	return renew(ctx, store, w)
}

// renew lets the name of a workspace that was deleted be used again. What an owner runs in one with strict effects has ended then.
func renew(ctx context.Context, store lease.Store, w log.Workspace) error {
	view, err := lease.Open(ctx, store, w)
	if err != nil {
		return err
	}
	if view.Creation().StrictEffects {
		select {
		case <-time.After(node.StrictWait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return lease.Renew(ctx, store, w)
}
