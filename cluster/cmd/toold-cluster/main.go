//go:build linux

// Command toold-cluster serves toold's contract on many machines: "node" runs
// workspaces, "gateway" lets users in, NATS JetStream keeps the logs of
// workspaces. docs/cluster.md is for operators.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/log/natslog"
	"github.com/toold/toold/cluster/members"
	"github.com/toold/toold/cluster/objects"
)

// version is set by the build.
var version = "development"

func main() {
	container.Init()
	root := &cobra.Command{
		Use: "toold-cluster", Short: "Serve tool calls on many machines", Version: version, SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(initCommand(), tokenCommand(), nodeCommand(), gatewayCommand(), nodesCommand(), drainCommand(), sessionsCommand(), backupCommand(), restoreCommand(), createCommand(), snapshotCommand(), deleteCommand(), quotaCommand(), natsCommand(), demoCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "toold-cluster:", err)
		os.Exit(1)
	}
}

// common are the flags of everything that is part of a cluster.
type common struct {
	certs, nats, objects string
	replicas             int
	fixed                bool
	logFormat, metrics   string
	link                 link // to NATS; set by connect
}

func (c *common) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.certs, "certs", "/etc/toold-cluster", "directory with ca.pem and this machine's certificate, as \"toold-cluster init\" writes them")
	flags.StringVar(&c.nats, "nats", "nats://127.0.0.1:4222", "URLs of NATS servers, separated by commas; tls:// uses the cluster's certificates")
	flags.BoolVar(&c.fixed, "nats-fixed", false, "use only the named NATS servers, not the addresses that these report of others")
	flags.IntVar(&c.replicas, "replicas", 3, "on how many NATS servers each log is kept; 1 only for trials")
	flags.StringVar(&c.logFormat, "log-format", "json", "how the log is written: json or console")
}

func (c *common) addObjects(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.objects, "objects", "nats", "where snapshots of files are kept: nats, or https://HOST/BUCKET of a store that speaks S3, with the credentials "+
		"in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
}

func (c *common) logger() (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.DisableStacktrace, config.Sampling = true, nil
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	config.Encoding = c.logFormat
	return config.Build()
}

// checkVersion returns an error for a NATS server that is older than 2.15.2: only from then on a leader that was replaced
// cannot acknowledge an append.
func checkVersion(version string) error {
	var found [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &found[0], &found[1], &found[2]); err != nil {
		return fmt.Errorf("the NATS server's version %q is not known: %w", version, err)
	}
	if slices.Compare(found[:], []int{2, 15, 2}) < 0 {
		return fmt.Errorf("the NATS server has the version %s, and a cluster needs 2.15.2 or newer", version)
	}
	return nil
}

func (c *common) members(conn *nats.Conn, js jetstream.JetStream, id *identity.Identity) members.Config {
	return members.Config{NATS: conn, JetStream: js, Replicas: c.replicas, Ping: members.Pinger(id)}
}

// logSuspected returns what logs why nodes are seen as lost.
func logSuspected(log *zap.Logger) func(members.Node, error) {
	return func(n members.Node, why error) {
		log.Warn("a node is lost", zap.String("name", n.Name), zap.String("at", n.Address), zap.Error(why))
	}
}

func (c *common) log(js jetstream.JetStream, doubted func(error)) *natslog.Log {
	return natslog.New(js, natslog.Config{Replicas: c.replicas, Storage: jetstream.FileStorage, Doubted: doubted})
}

// objectStore opens what --objects names.
func (c *common) objectStore(ctx context.Context, js jetstream.JetStream) (objects.Store, error) {
	if c.objects == "nats" {
		return objects.Bucket(ctx, js, "toold_objects", c.replicas)
	}
	return objects.OpenS3(ctx, c.objects)
}

// untilSignal returns a context that ends at the first SIGTERM or SIGINT, and a channel for those after it.
func untilSignal() (context.Context, <-chan os.Signal) {
	signals, more := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		cancel(fmt.Errorf("stopped by %v", <-signals))
		more <- <-signals
	}()
	return ctx, more
}
