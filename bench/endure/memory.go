// What clients have the daemon hold, and what it releases when they have left: its resident memory,
// from outside.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// A burden is what the clients of one run bring, and what the daemon may take for it.
type burden struct {
	editors     int   // sessions with buffers
	buffers     int   // of each
	bufferBytes int   // of each buffer
	holders     int   // sessions with large options
	optionBytes int   // of each one's settings
	peak        int64 // KiB that the daemon may have at its peak, while editors send
	idle        int64 // KiB that it may have once they have left
}

// leaveTime is how long after its clients have left the daemon may keep their memory.
const leaveTime = 30 * time.Second

// memory burdens a daemon with buffers, waits until their memory is given back, burdens it with options, and lists the
// sessions.
func memory(ctx context.Context, binary string, b burden, out io.Writer) (err error) {
	d, err := startServer(binary, "memory")
	if err != nil {
		return err
	}
	defer func() { d.kill(); err = errors.Join(err, os.RemoveAll(d.dir)) }()
	if err := d.bearEditors(ctx, b, out); err != nil {
		return err
	}
	if err := d.returnsMemory(ctx, b.idle, out); err != nil {
		return err
	}
	return d.bearOptions(ctx, b, out)
}

// bearEditors has editors send their buffers, and returns when they have left.
func (d *server) bearEditors(ctx context.Context, b burden, out io.Writer) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	const line = "a line of a text that an editor holds\n"
	text := strings.Repeat(line, b.bufferBytes/len(line))
	refused := 0
	for n := range b.editors {
		untaken, err := d.edit(ctx, fmt.Sprintf("editor-%d", n), b.buffers, text)
		if err != nil {
			return err
		}
		refused += untaken
	}
	peak, err := wire.Figure(d.cmd.Process.Pid, "VmHWM")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d sessions with %d buffers of %d bytes: %d were refused, peak %d MiB\n", b.editors, b.buffers, len(text), refused, peak>>10)
	if peak > b.peak {
		return violation{fmt.Errorf("the daemon took %d KiB, and may take %d", peak, b.peak)}
	}
	return nil
}

// edit attaches an editor that sends buffers and then only listens, and returns how many of them were refused.
func (d *server) edit(ctx context.Context, session string, buffers int, text string) (refused int, err error) {
	stream, err := d.open(ctx, &tooldv1.Attach{SessionId: session, Roots: []string{d.root()}, Capabilities: &tooldv1.Capabilities{Buffers: true}})
	if err != nil {
		return 0, err
	}
	for n := range buffers {
		path := filepath.Join(d.root(), session, fmt.Sprint(n))
		if err := stream.Send(&tooldv1.ExecuteRequest{Message: &tooldv1.ExecuteRequest_BufferChanged{BufferChanged: &tooldv1.BufferChanged{
			Path: path, Version: 1, Content: text,
		}}}); err != nil {
			return 0, err
		}
	}
	if err := stream.Send(&tooldv1.ExecuteRequest{}); err != nil { // its notice comes when the buffers have been taken
		return 0, err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		notice := event.GetNotice()
		switch word := notice.GetDetails().GetFields()["status"].GetStringValue(); notice.GetCode() {
		case "":
		case "unknown_message":
			return refused, nil
		case "buffer_too_large":
			refused++
			if word != "RESOURCE_EXHAUSTED" {
				return 0, violation{fmt.Errorf("a refusal without its type: %v", notice)}
			}
		default:
			return 0, violation{fmt.Errorf("unexpected: %v", notice)}
		}
	}
}

// open attaches a stream that lives until ctx ends.
func (d *server) open(ctx context.Context, attach *tooldv1.Attach) (*wire.Stream, error) {
	stream, err := wire.Attach(ctx, d.conn, attach)
	if err == nil {
		_, err = stream.Recv()
	}
	return stream, err
}

// returnsMemory waits until the daemon has no more than so many KiB.
func (d *server) returnsMemory(ctx context.Context, most int64, out io.Writer) error {
	left := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := wire.Figure(d.cmd.Process.Pid, "VmRSS")
		if err != nil {
			return err
		}
		if now <= most {
			fmt.Fprintf(out, "%d MiB %s after they had left\n", now>>10, time.Since(left).Round(time.Second))
			return nil
		}
		if time.Since(left) > leaveTime {
			return violation{fmt.Errorf("%s after its clients had left the daemon still has %d KiB, and may have %d", leaveTime, now, most)}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// bearOptions makes sessions with large options, which are taken or refused, and has the command line list them.
func (d *server) bearOptions(ctx context.Context, b burden, out io.Writer) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	taken := 0
	for n := range b.holders {
		settings := fmt.Sprintf(`{"env":{"LONG_%d":%q}}`, n, strings.Repeat("x", b.optionBytes))
		_, err := d.open(ctx, &tooldv1.Attach{
			SessionId: fmt.Sprintf("holder-%d", n), Roots: []string{d.root()}, Options: &tooldv1.Options{SettingsJson: proto.String(settings)},
		})
		switch {
		case err == nil:
			taken++
		case status.Code(err) != codes.ResourceExhausted:
			return err
		}
	}
	listed, err := exec.CommandContext(ctx, d.binary, "sessions", "--socket", d.socket()).CombinedOutput()
	if err != nil {
		return violation{fmt.Errorf("toold sessions: %w\n%s", err, listed)}
	}
	rows := strings.Count(string(listed), "\n") - 1 // the heading
	fmt.Fprintf(out, "%d sessions with settings of %d bytes: %d were taken, toold sessions lists %d in all\n", b.holders, b.optionBytes, taken, rows)
	if rows != b.editors+taken {
		return violation{fmt.Errorf("toold sessions lists %d sessions, and there are %d:\n%s", rows, b.editors+taken, listed)}
	}
	return nil
}
