//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
)

// A listed session is an entry of the bucket toold_index, in which gateways note where sessions are, with what the
// workspace's log has.
type listed struct {
	Principal string `json:"principal"`
	Workspace string `json:"workspace"`
	Session   string `json:"session"`
	Owner     string `json:"owner"`    // empty: no node has it
	Epoch     uint64 `json:"epoch"`    // how often the workspace was taken over
	Snapshot  string `json:"snapshot"` // of its files; empty: there is none
}

func sessionsCommand() *cobra.Command {
	var a admin
	var asJSON bool
	cmd := &cobra.Command{
		Use: "sessions", Short: "Show the sessions of all principals, and which node has their workspace", Args: cobra.NoArgs,
		Long: "Shows the sessions that gateways have noted, of the last 180 days, with the owner of their workspace from the workspace's log.",
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		id, err := identity.Load(a.certs, identity.Admin, a.name)
		if err != nil {
			return err
		}
		conn, js, err := a.connect(id)
		if err != nil {
			return err
		}
		defer conn.Close()
		all, err := a.sessions(cmd.Context(), js)
		if err != nil {
			return a.explain(err)
		}
		if asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(all)
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "PRINCIPAL\tWORKSPACE\tSESSION\tOWNER\tEPOCH\tSNAPSHOT")
		for _, s := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%.12s\n", s.Principal, s.Workspace, s.Session, cmp.Or(s.Owner, "-"), s.Epoch, cmp.Or(s.Snapshot, "-"))
		}
		return w.Flush()
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the sessions as JSON")
	return a.flags(cmd)
}

// sessions reads the index, and of each workspace its log.
func (a *admin) sessions(ctx context.Context, js jetstream.JetStream) ([]listed, error) {
	bucket, err := js.KeyValue(ctx, "toold_index")
	if err != nil {
		return nil, fmt.Errorf("the index of sessions cannot be read: %w", err)
	}
	keys, err := bucket.ListKeysFiltered(ctx, "s.>")
	if err != nil {
		return nil, err
	}
	store := lease.Store{Log: a.log(js, nil)}
	views := map[log.Workspace]*lease.View{}
	all := []listed{}
	for key := range keys.Keys() {
		value, err := bucket.Get(ctx, key)
		if err != nil {
			continue // it was removed meanwhile
		}
		var s listed
		if err := json.Unmarshal(value.Value(), &s); err != nil {
			return nil, fmt.Errorf("the entry %s of the index: %w", key, err)
		}
		w := log.Workspace{Principal: s.Principal, Name: s.Workspace}
		if views[w] == nil {
			if views[w], err = lease.Open(ctx, store, w); err != nil {
				return nil, fmt.Errorf("the log of the workspace %q of %q: %w", w.Name, w.Principal, err)
			}
		}
		if s.Epoch = views[w].Epoch(); !views[w].Released() {
			s.Owner = views[w].Owner()
		}
		saved, _ := views[w].Snapshot()
		s.Snapshot = saved.Reference
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Session, b.Session))
	})
	return all, nil
}
