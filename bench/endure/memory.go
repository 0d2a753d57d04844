// What clients have the daemon hold, and what it releases when they have left: its resident memory, from outside. All kinds
// at once: buffers of several principals' editors, outputs, and as many sessions with large options as there may be.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/bench/wire"
	toold "github.com/toold/toold/clients/go"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A burden is what the clients of one run bring, and what the daemon may take for it.
type burden struct {
	editors     int   // sessions with buffers
	buffers     int   // of each
	bufferBytes int   // of each buffer
	holders     int   // sessions with large options
	optionBytes int   // of each one's settings
	envBytes    int   // of each one's environment
	toolBytes   int   // of the description of each one's client tool
	spillers    int   // sessions that print, one after the other
	spillBytes  int   // of each; the first prints three times that, and a session may keep twice that
	peak        int64 // KiB that the daemon may have at its peak
	idle        int64 // KiB that it may have once they have left
	within      time.Duration
}

// whole is the burden of "make memory": 600 MiB of buffers, more than 1 GiB of outputs, and more than 64 MiB of options.
var whole = burden{
	editors: 10, buffers: 4, bufferBytes: 15 << 20,
	holders: 255, optionBytes: 250_000, envBytes: 40_000, toolBytes: 16_000,
	spillers: 9, spillBytes: 128 << 20,
	peak: 768 << 10, idle: 60 << 10, within: 30 * time.Second,
}

// principals are those on TCP. The machine's own user comes over the socket.
var principals = []string{"ann", "bob"}

// A crowd is the clients of one run. Each principal has two connections: the clients of the first one leave politely, and the
// other is cut off.
type crowd struct {
	*server
	burden
	links []*toold.Conn // the machine's own user's two first

	mu     sync.Mutex // guards the rest
	polite []*wire.Stream
	counts map[string]int // of what was taken and of what was refused, by kind and limit
	held   int            // the number of a holder whose options were taken
}

// memory burdens a daemon with everything at once, has the command line list the sessions, and waits until the memory is given
// back. The sessions still have their options then.
func memory(ctx context.Context, binary string, b burden, out io.Writer) (err error) {
	c, err := gather(binary, b)
	if err != nil {
		return err
	}
	defer func() { c.kill(); err = errors.Join(err, os.RemoveAll(c.dir)) }()
	if err := c.connectAll(ctx); err != nil {
		return err
	}
	if err := c.report(out, "alone"); err != nil {
		return err
	}
	if err := c.load(ctx); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(out, "%5d %s\n", c.counts[kind], kind)
	}
	if err := errors.Join(c.report(out, "all attached"), c.list(ctx, out)); err != nil {
		return err
	}
	if err := c.leave(); err != nil {
		return err
	}
	if err := c.returnsMemory(ctx, out); err != nil {
		return err
	}
	return c.keeps(ctx)
}

// gather starts a daemon that serves TCP too. After an error nothing is left of it.
func gather(binary string, b burden) (*crowd, error) {
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		return nil, err
	}
	d, err := newServer(binary, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &crowd{server: d, burden: b, counts: map[string]int{}}
	if err = c.prepare(); err == nil {
		err = d.start("--listen", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

// prepare writes the tokens and the settings that the daemon finds.
func (c *crowd) prepare() error {
	var tokens strings.Builder
	for _, name := range principals {
		fmt.Fprintf(&tokens, "%s %s\n", name, tokenOf(name))
	}
	limits := fmt.Sprintf(`{"limits": {"session_output_bytes": %d}}`, 2*c.spillBytes)
	for path, text := range map[string]string{
		filepath.Join(c.state(), "tokens"):                          tokens.String(),
		filepath.Join(c.dir, "home", ".config/toold/settings.json"): limits,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// tokenOf returns the token of a principal, which guards nothing.
func tokenOf(name string) string { return strings.Repeat(name, 10) }

// connectAll makes two connections for each principal.
func (c *crowd) connectAll(ctx context.Context) error {
	info, err := c.conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		return err
	}
	address := ""
	for _, l := range info.GetListeners() {
		if after, is := strings.CutPrefix(l.GetAddress(), "tcp://"); is {
			address = after
		}
	}
	add := func(link *toold.Conn, err2 error) {
		err = errors.Join(err, err2)
		c.links = append(c.links, link)
	}
	for range 2 {
		add(wire.Dial(c.socket()))
	}
	for _, name := range principals {
		for range 2 {
			add(wire.DialTCP(address, tokenOf(name)))
		}
	}
	return err
}

// leave has the clients of every first connection end their streams, and cuts the others off.
func (c *crowd) leave() error {
	for n, link := range c.links {
		if n%2 == 1 {
			link.Close()
		}
	}
	for _, stream := range c.polite {
		if err := stream.CloseSend(); err != nil {
			return err
		}
		for {
			if _, err := stream.Recv(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("leaving: %w", err)
			}
		}
	}
	return nil
}

// report prints what the daemon takes up.
func (c *crowd) report(out io.Writer, when string) error {
	pid := c.cmd.Process.Pid
	figures := map[string]int64{}
	for _, name := range []string{"VmRSS", "VmHWM", "Threads"} {
		n, err := wire.Figure(pid, name)
		if err != nil {
			return err
		}
		figures[name] = n
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	fmt.Fprintf(out, "%s: %d MiB, peak %d MiB, %d threads, %d descriptors\n",
		when, figures["VmRSS"]>>10, figures["VmHWM"]>>10, figures["Threads"], len(files))
	if figures["VmHWM"] > c.peak {
		return violation{fmt.Errorf("the daemon took %d KiB, and may take %d", figures["VmHWM"], c.peak)}
	}
	return err
}

// returnsMemory waits until the daemon has no more than it may have.
func (c *crowd) returnsMemory(ctx context.Context, out io.Writer) error {
	left := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := wire.Figure(c.cmd.Process.Pid, "VmRSS")
		if err != nil {
			return err
		}
		if now <= c.idle {
			return c.report(out, time.Since(left).Round(time.Second).String()+" after they had left")
		}
		if time.Since(left) > c.within {
			return violation{fmt.Errorf("%s after its clients had left the daemon still has %d KiB, and may have %d", c.within, now, c.idle)}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// list has the command line list the sessions of the machine's own user.
func (c *crowd) list(ctx context.Context, out io.Writer) error {
	listed, err := exec.CommandContext(ctx, c.binary, "sessions", "--socket", c.socket()).CombinedOutput()
	if err != nil {
		return violation{fmt.Errorf("toold sessions: %w\n%s", err, listed)}
	}
	rows, all := strings.Count(string(listed), "\n")-1, c.counts[holding] // without the heading
	for n := range c.editors {
		if n%len(c.links) < 2 {
			all++
		}
	}
	fmt.Fprintf(out, "toold sessions lists %d\n", rows)
	if rows != all {
		return violation{fmt.Errorf("toold sessions lists %d sessions, and there are %d", rows, all)}
	}
	return nil
}
