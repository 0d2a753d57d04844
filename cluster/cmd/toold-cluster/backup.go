//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/toold/toold/cluster/backup"
	"github.com/toold/toold/cluster/gateway"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/sqlitelog"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/snapshot"
)

// What the directory of a backup holds.
const (
	backupLog     = "log.db"
	backupObjects = "objects"
	backupIndex   = "index.jsonl"
)

// withLog connects an administrator with NATS, and runs do.
func (a *admin) withLog(do func(js jetstream.JetStream, l log.Log) error) error {
	id, err := identity.Load(a.certs, identity.Admin, a.name)
	if err != nil {
		return err
	}
	conn, js, err := a.connect(id)
	if err != nil {
		return err
	}
	defer conn.Close()
	return a.explain(do(js, a.log(js, nil)))
}

// withStores connects an administrator with NATS and the object store, and runs do.
func (a *admin) withStores(ctx context.Context, do func(js jetstream.JetStream, place backup.Place) error) error {
	return a.withLog(func(js jetstream.JetStream, l log.Log) error {
		opening, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		store, err := a.objectStore(opening, js)
		if err != nil {
			return fmt.Errorf("the object store %s cannot be opened: %w", a.objects, err)
		}
		return do(js, backup.Place{Log: l, Objects: store})
	})
}

// openBackup opens the directory of a backup. The caller closes the log.
func openBackup(dir string) (backup.Place, *sqlitelog.Log, error) {
	kept, err := sqlitelog.Open(filepath.Join(dir, backupLog))
	return backup.Place{Log: kept, Objects: objects.Dir(filepath.Join(dir, backupObjects))}, kept, err
}

func backupCommand() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Copy all workspaces to a new directory", Args: cobra.ExactArgs(1),
		Long: "Copies all workspaces to a directory that it makes: their logs, the last snapshots of their files, named snapshots, and the index of sessions. " +
			"The cluster may be in use meanwhile: each workspace is copied as it is at one moment.",
		Example: "  toold-cluster backup /backup/2026-11-27 --objects https://s3.example/toold",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return a.withStores(cmd.Context(), func(js jetstream.JetStream, place backup.Place) error {
			if err := os.Mkdir(args[0], 0o700); errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists: name a directory that does not, which is made", args[0])
			} else if err != nil {
				return err
			}
			target, kept, err := openBackup(args[0])
			if err != nil {
				return err
			}
			n, err := copyAll(cmd.Context(), a.log(js, nil).Workspaces(cmd.Context(), lease.NameOf), func(w log.Workspace) error {
				return backup.Copy(cmd.Context(), w, place, target)
			})
			_, named := snapshot.CopyNamed(cmd.Context(), place.Objects, target.Objects)
			err = errors.Join(err, named, kept.Close(), exportIndex(cmd.Context(), js, filepath.Join(args[0], backupIndex)))
			fmt.Fprintf(cmd.OutOrStdout(), "%d workspaces\n", n)
			return err
		})
	}
	a.addObjects(cmd)
	return a.flags(cmd)
}

func exportIndex(ctx context.Context, js jetstream.JetStream, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(gateway.ExportIndex(ctx, js, f), f.Sync(), f.Close())
}

func restoreCommand() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use: "restore DIR", Short: "Copy the workspaces of a backup to a cluster that has none of them", Args: cobra.ExactArgs(1),
		Long: "Copies the workspaces of a backup to the cluster. One that the cluster has already is left as it is, and reported. " +
			"If it breaks off, run it again.",
		Example: "  toold-cluster restore /backup/2026-11-27 --objects https://s3.example/toold",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if _, err := os.Stat(filepath.Join(args[0], backupLog)); err != nil {
			return fmt.Errorf("%s is not a backup: %w", args[0], err)
		}
		return a.withStores(cmd.Context(), func(js jetstream.JetStream, place backup.Place) error {
			source, kept, err := openBackup(args[0])
			if err != nil {
				return err
			}
			defer func() { _ = kept.Close() }()
			left := 0
			n, err := copyAll(cmd.Context(), kept.Workspaces(), func(w log.Workspace) error {
				err := backup.Restore(cmd.Context(), w, source, place)
				if errors.Is(err, backup.ErrExists) {
					left++
					fmt.Fprintf(cmd.OutOrStdout(), "the workspace %q of %q is left as it is: the cluster has it already\n", w.Name, w.Principal)
					return nil
				}
				return err
			})
			fmt.Fprintf(cmd.OutOrStdout(), "%d workspaces\n", n-left)
			_, named := snapshot.CopyNamed(cmd.Context(), source.Objects, place.Objects)
			return errors.Join(err, named, a.importIndex(cmd.Context(), js, filepath.Join(args[0], backupIndex)))
		})
	}
	a.addObjects(cmd)
	return a.flags(cmd)
}

func (a *admin) importIndex(ctx context.Context, js jetstream.JetStream, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return gateway.ImportIndex(ctx, js, a.replicas, f)
}

// copyAll copies each workspace, and returns how many it has copied. The error names those that it has not.
func copyAll(ctx context.Context, all func(yield func(log.Workspace, error) bool), one func(log.Workspace) error) (n int, failed error) {
	for w, err := range all {
		if err == nil {
			if err = one(w); err != nil {
				err = fmt.Errorf("the workspace %q of %q: %w", w.Name, w.Principal, err)
			} else {
				n++
			}
		}
		if failed = errors.Join(failed, err); ctx.Err() != nil {
			break
		}
	}
	return n, failed
}
