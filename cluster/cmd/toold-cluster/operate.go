//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/members"
)

func initCommand() *cobra.Command {
	var dir string
	subjects := map[identity.Role]*[]string{identity.Gateway: {}, identity.Node: {}, identity.Admin: {}, identity.NATS: {}}
	cmd := &cobra.Command{
		Use: "init", Short: "Make the certificates of a cluster", Args: cobra.NoArgs,
		Long: "Makes an authority, if there is none in the directory, and a certificate for each machine that is named. " +
			"What exists is kept: to renew a certificate, remove its two files and run the same command again.\n\n" +
			"NAME=HOST,HOST names a machine with the hosts by which clients know it. Nodes need none.",
		Example: "  toold-cluster init --dir certs --node a --node b --node c --gateway g=gateway.example,10.0.0.1 --admin me",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []identity.Subject
			for _, role := range slices.Sorted(maps.Keys(subjects)) {
				for _, one := range *subjects[role] {
					name, hosts, _ := strings.Cut(one, "=")
					all = append(all, identity.Subject{Role: role, Name: name, Hosts: strings.FieldsFunc(hosts, func(r rune) bool { return r == ',' })})
				}
			}
			issued, err := identity.Init(dir, all...)
			return errors.Join(printIssued(cmd.OutOrStdout(), issued), err)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "certs", "where the certificates are written")
	for role, named := range subjects {
		cmd.Flags().StringArrayVar(named, string(role), nil, "NAME or NAME=HOST,HOST of a machine or person with this role; may be repeated")
	}
	return cmd
}

// printIssued prints until when certificates are valid.
func printIssued(to io.Writer, all []identity.Issued) error {
	w := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	for _, one := range all {
		what, until := "kept", "valid until"
		if one.Made {
			what = "made"
		}
		if one.Until.Before(time.Now()) {
			until = "expired on"
		}
		fmt.Fprintf(w, "%s\t%s\t%s %s\n", what, one.File, until, one.Until.Format(time.DateOnly))
	}
	return w.Flush()
}

func tokenCommand() *cobra.Command {
	return &cobra.Command{
		Use: "token NAME", Short: "Make a token for a user", Args: cobra.ExactArgs(1),
		Long:    "Prints a new token on standard error, and on standard output the line for the gateways' token file, which does not contain it.",
		Example: "  toold-cluster token alice >>tokens",
		RunE: func(cmd *cobra.Command, args []string) error {
			token, line, err := identity.NewToken(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), token)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(line))
			return err
		},
	}
}

// An admin is the connection of an administrator's command.
type admin struct {
	common
	name string
}

func (a *admin) flags(cmd *cobra.Command) *cobra.Command {
	a.add(cmd)
	cmd.Flags().StringVar(&a.name, "name", "me", "the administrator's name, as in the certificate")
	return cmd
}

// with connects and runs do.
func (a *admin) with(do func(ctx context.Context, config members.Config, view *members.Members) error) error {
	id, err := identity.Load(a.certs, identity.Admin, a.name)
	if err != nil {
		return err
	}
	conn, js, err := a.connect(id)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	config := a.members(conn, js, id)
	view, err := members.Open(ctx, config)
	if err != nil {
		return a.unanswered(err)
	}
	defer view.Close()
	return do(ctx, config, view)
}

// unanswered returns an error of the first request to NATS, with why.
func (a *admin) unanswered(err error) error {
	if a.link.why() != nil {
		return a.explain(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("NATS at %s is reached, but its JetStream does not answer, which needs more than half of the servers: %w", a.nats, err)
	}
	return fmt.Errorf("NATS at %s does not answer as it should: %w", a.nats, err)
}

func nodesCommand() *cobra.Command {
	var a admin
	var asJSON bool
	cmd := &cobra.Command{Use: "nodes", Short: "Show the nodes of the cluster", Args: cobra.NoArgs}
	cmd.RunE = func(*cobra.Command, []string) error {
		return a.with(func(_ context.Context, _ members.Config, view *members.Members) error {
			heard(view)
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(view.All())
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tADDRESS\tSTATE\tWORKSPACES\tSESSIONS\tVERSION")
			for _, n := range view.All() {
				state := "serves"
				switch {
				case view.Suspect(n.Name):
					state = "lost"
				case view.Drained(n.Name):
					state = "drained"
				case n.Draining || view.DrainWanted(n.Name):
					state = "draining"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", n.Name, n.Address, state, n.Load.Workspaces, n.Load.Sessions, n.Version)
			}
			return w.Flush()
		})
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the nodes as JSON")
	return a.flags(cmd)
}

// heard waits until every live node has announced itself, which takes no longer than its interval.
func heard(view *members.Members) {
	late := time.After(3 * time.Second)
	for {
		changed, silent := view.Changed(), 0
		for _, n := range view.All() {
			if n.Version == "" {
				silent++
			}
		}
		if silent == 0 {
			return
		}
		select {
		case <-changed:
		case <-late:
			return
		}
	}
}

func drainCommand() *cobra.Command {
	var a admin
	var stop, forget bool
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Have a node give up its workspaces", Args: cobra.ExactArgs(1),
		Long: "Has a node give up its workspaces to others, and returns when it has none. It takes none until \"drain --undo\".\n\n" +
			"Prints the background tasks that this has ended, and the calls that did not come to their end in time.",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.with(func(ctx context.Context, config members.Config, view *members.Members) error {
			if _, known := view.Node(args[0]); !known {
				return fmt.Errorf("there is no node %q; \"toold-cluster nodes\" lists them", args[0])
			}
			if forget {
				return forgetNode(ctx, config, view, args[0])
			}
			if err := members.Drain(ctx, config, args[0], !stop); err != nil || stop {
				return err
			}
			left := func(n int) { fmt.Fprintf(cmd.ErrOrStderr(), "%s still has %d workspaces\n", args[0], n) }
			ended, err := awaitDrained(view, args[0], left)
			for line := range strings.Lines(ended) {
				fmt.Fprintln(cmd.OutOrStdout(), "ended:", strings.TrimSpace(line))
			}
			return err
		})
	}
	cmd.Flags().BoolVar(&stop, "undo", false, "let the node take workspaces again")
	cmd.Flags().BoolVar(&forget, "forget", false, "remove a node that will not come back from the list")
	return a.flags(cmd)
}

// checkPrincipal returns an error for a name that no user has.
func checkPrincipal(who string) error {
	kind, name, _ := strings.Cut(who, ":")
	if kind != "token" && kind != "certificate" || name == "" {
		return fmt.Errorf("%q is no user: write token:NAME or certificate:NAME", who)
	}
	return nil
}

// forgetNode removes a node from the list, unless it lives.
func forgetNode(ctx context.Context, config members.Config, view *members.Members, name string) error {
	node, _ := view.Node(name)
	asking, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	err := config.Ping(asking, node)
	lives := err == nil || errors.Is(err, members.ErrNotServing)
	if !lives { // or this machine cannot reach it
		heard(view)
		node, _ = view.Node(name)
		lives = node.Version != "" // it has announced itself since this command began
	}
	if lives {
		return fmt.Errorf("the node %q lives, at %s, and would be back at once: stop it before it is forgotten", name, node.Address)
	}
	return members.Forget(ctx, config, name)
}

// awaitDrained returns when a node has announced that it has no workspaces, or is lost. It returns what the drain has ended, one
// thing on each line, as far as the node has announced it.
func awaitDrained(view *members.Members, name string, report func(left int)) (ended string, err error) {
	last := 0
	for {
		changed := view.Changed()
		n, _ := view.Node(name)
		switch {
		case view.Suspect(name):
			return n.Ended, fmt.Errorf("the node %q is lost; other nodes take its workspaces over when they are asked for", name)
		case view.Drained(name):
			return n.Ended, nil
		case n.Draining && n.Load.Workspaces > 0 && n.Load.Workspaces != last:
			last = n.Load.Workspaces
			report(last)
		}
		<-changed
	}
}

func natsCommand() *cobra.Command {
	var name, data, host string
	var port, route int
	var routes []string
	cmd := &cobra.Command{
		Use: "nats", Short: "Run a NATS server with the settings that a cluster needs", Args: cobra.NoArgs,
		Long: "Runs a NATS server with JetStream that syncs every write, for trials and for machines without one. " +
			"It has no authentication: only for networks of the cluster's own.",
		RunE: func(*cobra.Command, []string) error {
			o := &server.Options{ServerName: name, Host: host, Port: port, JetStream: true, StoreDir: data, SyncAlways: true, NoSigs: true}
			if route > 0 {
				o.Cluster = server.ClusterOpts{Name: "toold", Host: host, Port: route}
			}
			for _, r := range routes {
				u, err := url.Parse("nats://" + r)
				if err != nil {
					return err
				}
				o.Routes = append(o.Routes, u)
			}
			s, err := server.NewServer(o)
			if err != nil {
				return err
			}
			s.SetLoggerV2(natsLogger{}, false, false, false)
			s.Start()
			ctx, _ := untilSignal()
			<-ctx.Done()
			s.Shutdown()
			s.WaitForShutdown()
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "nats", "the server's name, which no other of its cluster has")
	flags.StringVar(&data, "data", "/var/lib/toold-cluster/nats", "directory for streams")
	flags.StringVar(&host, "host", "127.0.0.1", "address to listen on")
	flags.IntVar(&port, "port", 4222, "port for clients")
	flags.IntVar(&route, "route-port", 0, "port for other servers; 0: this one is alone")
	flags.StringSliceVar(&routes, "routes", nil, "HOST:PORT of other servers")
	return cmd
}

// natsLogger writes what an operator must know.
type natsLogger struct{}

func (natsLogger) Noticef(string, ...any) {}
func (natsLogger) Debugf(string, ...any)  {}
func (natsLogger) Tracef(string, ...any)  {}

func (natsLogger) Warnf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "warning: "+format+"\n", v...)
}

func (natsLogger) Errorf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", v...)
}

func (natsLogger) Fatalf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "fatal: "+format+"\n", v...)
}
