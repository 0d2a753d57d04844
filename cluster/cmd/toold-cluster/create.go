//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cluster/backup"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/node"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/snapshot"
)

func createCommand() *cobra.Command {
	var a admin
	var c lease.Creation
	cmd := &cobra.Command{
		Use: "create PRINCIPAL WORKSPACE", Short: "Create a workspace, with files or strict effects", Args: cobra.ExactArgs(2),
		Long: "Creates a workspace, which begins with the first request for it. A request creates one as well, empty or as its metadata asks. " +
			"A repository must be among the --source of each node. --snapshot needs the nodes' --objects.",
		Example: "  toold-cluster create token:alice project --git https://git.example/team/project --git-ref v2",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := node.CheckOrigin(c, nil); err != nil {
			return err
		}
		if err := checkPrincipal(args[0]); err != nil {
			return err
		}
		w := log.Workspace{Principal: args[0], Name: args[1]}
		create := func(l log.Log) error {
			err := lease.Create(cmd.Context(), lease.Store{Log: l}, w, c)
			if errors.Is(err, lease.ErrExists) {
				return fmt.Errorf("the workspace %q of %q exists already", w.Name, w.Principal)
			}
			return err
		}
		if c.Snapshot == "" {
			return a.withLog(func(_ jetstream.JetStream, l log.Log) error { return create(l) })
		}
		return a.withStores(cmd.Context(), func(_ jetstream.JetStream, place backup.Place) error {
			if err := snapshot.CheckNamed(cmd.Context(), place.Objects, c.Snapshot); err != nil {
				return err
			}
			return create(place.Log)
		})
	}
	a.addObjects(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&c.StrictEffects, "strict-effects", false, "end what runs in it when its node has had no contact to the log for 10 s, and begin it elsewhere only then")
	flags.StringVar(&c.Git, "git", "", "URL or path of the Git repository whose files it begins with")
	flags.StringVar(&c.GitRef, "git-ref", "", "branch, tag or commit of the repository (default: its default branch)")
	flags.StringVar(&c.Snapshot, "snapshot", "", "name of the snapshot whose files it begins with")
	return a.flags(cmd)
}

func snapshotCommand() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use: "snapshot PRINCIPAL WORKSPACE NAME", Short: "Name a workspace's last snapshot, for new workspaces", Args: cobra.ExactArgs(3),
		Long: "Keeps the files of a workspace, as they were stored last, under a name. All users may create workspaces that begin with them. " +
			"Home directories are not part of that. The name may be that of an earlier snapshot, which it replaces.",
		Example: "  toold-cluster snapshot token:alice project golden --objects https://s3.example/toold",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		w := log.Workspace{Principal: args[0], Name: args[1]}
		return a.withStores(cmd.Context(), func(_ jetstream.JetStream, place backup.Place) error {
			view, err := lease.Open(cmd.Context(), lease.Store{Log: place.Log}, w)
			if err != nil {
				return err
			}
			saved, is := view.Snapshot()
			if !is {
				return fmt.Errorf("the workspace %q of %q has no snapshot yet", w.Name, w.Principal)
			}
			return snapshot.Nominate(cmd.Context(), place.Objects, objects.Below(place.Objects, w.ID()+"/"), saved.Reference, args[2])
		})
	}
	a.addObjects(cmd)
	return a.flags(cmd)
}
