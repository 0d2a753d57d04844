// The daemon in the foreground: flags, log, signals, readiness. The tools that it serves are in toolset.go.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/trace"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/daemon"
	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/mirror"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/daemon/telemetry"
)

// serving is the flags of serve.
type serving struct {
	root, state, logFormat string
	settings               settingsFiles
	tcp                    listening
	idleExit               time.Duration
	readyFD                int
	http                   string // HOST:PORT; empty: the dashboard is reachable when a client asks for it
	mirror                 string // a socket; empty: the journal has no mirror
	metrics                string // an address; empty: the metrics are served nowhere
	trace                  string // empty: none
	canTakeOver            int    // the format of a handover; 0: it is not asked about
}

func (s *app) serveCommand() *cobra.Command {
	var f serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground",
		Long: "Runs the daemon in the foreground and prints where it listens.\n\n" +
			"SIGTERM or SIGINT lets running calls finish for the drain time; a second one ends them at once.",
		Example: "  toold serve --root ~/src/project\n  toold serve --socket /tmp/mine/toold.sock --log-format json\n  toold serve --listen 127.0.0.1:7777",
		Args:    cobra.NoArgs,
		RunE:    cli.Action(func(context.Context, []string) error { return s.serve(f) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.root, "root", "", "root of sessions that name none (default: the working directory)")
	flags.StringVar(&f.state, "state-dir", "", "where the journal and outputs are kept (default: "+access.DefaultStateDir()+"; with --socket a folder beside the socket)")
	f.settings.add(cmd)
	f.tcp.add(cmd)
	f.logFormat = "console"
	cli.AddChoice(cmd, &f.logFormat, "log-format", "", "how the log is written: json or console", "json", "console")
	flags.DurationVar(&f.idleExit, "idle-exit", 0, "end after so long without use; 0: never")
	flags.StringVar(&f.http, "http", "", "let the dashboard listen at HOST:PORT on loopback from the start, with /metrics (port 0: any)")
	flags.StringVar(&f.mirror, "mirror", "", "socket of a server that stores what the journal commits before clients see it")
	flags.StringVar(&f.metrics, "metrics", "", "serve metrics in the text format of Prometheus at unix:PATH, under /metrics")
	flags.IntVar(&f.readyFD, "ready-fd", 0, "descriptor on which to say that the daemon listens")
	_ = flags.MarkHidden("ready-fd")
	flags.StringVar(&f.trace, "trace", "", "write a trace of the Go runtime to this file, with the phases of each call as regions")
	_ = flags.MarkHidden("trace")
	flags.IntVar(&f.canTakeOver, "can-take-over", 0, "tell whether this program could go on for a daemon with these arguments, and end")
	_ = flags.MarkHidden("can-take-over")
	return cmd
}

func (s *app) serve(f serving) error {
	if f.canTakeOver != 0 {
		return f.answerTakeOver(s.Stdout)
	}
	var ready *os.File // nil: no process waits for it
	if _, goesOn := os.LookupEnv(takeOverVariable); f.readyFD > 0 && !goesOn {
		syscall.CloseOnExec(f.readyFD) // no process that the daemon starts may hold it open
		ready = os.NewFile(uintptr(f.readyFD), "readiness")
	}
	err := s.serveUntilDone(f, ready)
	if err != nil {
		announce(ready, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return err
}

// startTrace begins a trace of the Go runtime, if file is not empty. The function that it returns ends the trace.
func startTrace(file string) (end func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		err = trace.Start(f)
	}
	return func() { trace.Stop(); _ = f.Close() }, err
}

// announce reports to the process that started the daemon how the start went, once: the pipe is closed then.
func announce(ready *os.File, text string) {
	_, _ = ready.WriteString(text + "\n")
	_ = ready.Close()
}

// serveUntilDone serves until the daemon has ended. For an upgrade the installed program goes on in this process; if it cannot be
// begun, this one does.
func (s *app) serveUntilDone(f serving, ready *os.File) error {
	inherited, err := takeOver()
	if err != nil {
		return err
	}
	manager := takeServiceManager()
	log, err := newLog(f.logFormat)
	if err != nil {
		return err
	}
	root, err := servedRoot(f.root)
	if err != nil {
		return err
	}
	if err := f.settings.absolute(); err != nil {
		return fmt.Errorf("the settings cannot be found: %w", err)
	}
	next, err := newSuccessor(manager.variables())
	if err != nil {
		return fmt.Errorf("this program's own file cannot be found: %w", err)
	}
	p := program{app: s, serving: f, manager: manager, next: next, ready: ready}
	p.config = daemon.Config{
		Tools: toolset(f.settings), Root: root, Version: version, UserSettings: f.settings.user, ManagedDir: f.settings.managed,
		Log: daemon.Redacted(log, f.settings.user, f.settings.managed), IdleExit: f.idleExit, HTTP: f.http, Successor: next.ask, Inherited: inherited,
	}
	for {
		handover, err := p.serve()
		if err != nil || handover == nil {
			return err
		}
		err = next.begin(handover)
		p.config.Log.Error("the installed program could not be begun: this one goes on", zap.Error(err))
		p.config.Inherited, p.config.NotUpgraded = handover, err
	}
}

// A program is this program as a daemon.
type program struct {
	*app
	serving
	manager serviceManager
	next    *successor
	ready   *os.File // nil: no process waits for it
	config  daemon.Config
}

// serve serves until the daemon ends, or is to go on as another program with what serve returns.
func (p *program) serve() (*daemon.Handover, error) {
	traced, err := startTrace(p.trace)
	if err != nil {
		return nil, err
	}
	defer traced()
	// The lock comes first: what a dead daemon left must not be swept while another one lives.
	listeners, places, err := p.listen()
	if err != nil {
		return nil, err
	}
	config := p.config
	config.StateDir, err = filepath.Abs(cmp.Or(p.state, p.daemon.StateDir()))
	release := func() {}
	if err == nil && p.mirror != "" {
		release = mirrored(&config, p.mirror)
		defer release()
	}
	if err == nil {
		var end func()
		end, err = p.observed(&config)
		defer end()
	}
	var d *daemon.Daemon
	if err == nil {
		d, err = daemon.New(config)
	}
	if err != nil {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	stop := func() { d.Stop(); release() }
	err = p.serveOn(listeners, places, d, stop)
	return d.Handover(), err
}

// listen opens the listeners, or takes over those of the program before.
func (p *program) listen() (listeners []net.Listener, places []string, err error) {
	var passed access.Passed
	if p.config.Inherited != nil {
		passed = p.config.Inherited.Passed
	}
	socket, err := p.socket(passed.Sockets)
	if err != nil {
		return nil, nil, err
	}
	listeners, places = []net.Listener{socket}, []string{p.daemon.Socket}
	state, err := filepath.Abs(cmp.Or(p.state, p.daemon.StateDir()))
	var tcp net.Listener
	if err == nil {
		tcp, err = p.tcp.open(state, passed.TCP)
	}
	if err != nil {
		return nil, nil, errors.Join(err, socket.Close())
	}
	if tcp != nil {
		listeners, places = append(listeners, tcp), append(places, p.tcp.said(tcp))
	}
	return listeners, places, nil
}

// observed has the daemon serve metrics and make spans, as far as that was asked for, until end is called.
func (f serving) observed(config *daemon.Config) (end func(), err error) {
	noMetrics, noSpans := func() {}, func() {}
	if f.metrics != "" {
		noMetrics, err = serveMetrics(config, f.metrics)
	} else if f.http != "" {
		config.Metrics = telemetry.NewMetrics()
	}
	traces := f.settings.store().Load(settings.Scope{}).Traces
	if err == nil && cmp.Or(traces.Endpoint, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != "" {
		noSpans, err = startSpans(config, traces)
	}
	return func() { noSpans(); noMetrics() }, err
}

// mirrored sets the daemon's mirror to the one at a socket. After release nothing waits for it.
func mirrored(config *daemon.Config, socket string) (release func()) {
	client := mirror.Connect(socket)
	config.Mirror, config.Node = client.Append, true
	return client.Close
}

// serveOn serves on the listeners, which are at those places. The first signal drains the daemon, the second calls stop.
func (p *program) serveOn(listeners []net.Listener, places []string, d *daemon.Daemon, stop func()) error {
	signals := make(chan os.Signal, 2) // two: the second must not be lost behind the first
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	serving, ended := context.WithCancel(context.Background())
	defer ended()
	var beside sync.WaitGroup
	beside.Go(func() { obey(signals, serving.Done(), d.Drain, stop) })
	beside.Go(func() { p.manager.supervise(serving, p.daemon.Socket, d.Ending(), d.DrainTime()) })
	p.config.Log.Info("listening", zap.Strings("places", places), zap.Int("pid", os.Getpid()), zap.String("version", version))
	if p.ready == nil && p.config.Inherited == nil {
		for _, place := range places {
			fmt.Fprintf(p.Stdout, "toold %s listens on %s\n", version, place)
		}
	}
	announce(p.ready, strings.TrimSpace(connect.ReadyWord))
	err := d.Serve(listeners...)
	ended()
	beside.Wait()
	p.config.Log.Info("ended", zap.Error(err))
	return err
}

// obey calls one of acts at each signal.
func obey(signals <-chan os.Signal, ended <-chan struct{}, acts ...func()) {
	for _, act := range acts {
		select {
		case <-signals:
			act()
		case <-ended:
			return
		}
	}
	<-ended
}

func servedRoot(root string) (string, error) {
	absolute, err := filepath.Abs(root) // empty: the working directory
	if err != nil {
		return "", fmt.Errorf("the root cannot be found: %w", err)
	}
	info, err := os.Stat(absolute)
	if err != nil {
		return "", cli.Misused("the root cannot be used: %v", err)
	}
	if !info.IsDir() {
		return "", cli.Misused("the root %s is not a directory: name one with --root", absolute)
	}
	return absolute, nil
}

func newLog(format string) (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.DisableStacktrace = true // a failed call is not a crash; the daemon logs the stack of one itself
	config.DisableCaller = true     // finding it out takes twice as long as the rest of a line
	config.Sampling = nil           // what is worth a line is worth each of its lines
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	if config.Encoding = format; format == "console" {
		config.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	}
	return config.Build()
}
