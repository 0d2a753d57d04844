// Progress on one stream: for each call that runs, the output since the last chunk, the newest
// step, or a heartbeat. A slow client gets fewer and larger chunks, and past a bound a gap that
// the chunk declares.

package daemon

import (
	"bytes"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/toold/toold/daemon/convert"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/spool"
)

const (
	// chunkBytes keeps a message below 32 KiB, where grpc-go begins to take buffers of 1 MiB.
	chunkBytes = 30 << 10
	// chunkEvery is how long output is gathered, after the first byte, before it is sent.
	chunkEvery = 20 * time.Millisecond
	// chunksAtOnce bounds what is sent of one call before records and other calls have their turn
	// again.
	chunksAtOnce = 32
	// heartbeatEvery is how often a silent call is heard of.
	heartbeatEvery = 5 * time.Second
	// behindBytes is how far a stream may be behind an output before it leaves out what is between.
	behindBytes = 1 << 20
)

// followed is a running call as one stream sees it.
type followed struct {
	use    *pipeline.Use
	since  time.Time
	last   time.Time // of the last progress sent
	pos    int64     // in the order of both channels
	next   [2]int64  // in each channel: the first byte not sent
	held   [2][]byte // in each channel: the beginning of a character whose rest is still to come
	steps  int
	output *spool.Output
}

// followCall begins to follow a call whose start is or was sent; nil when it has ended already.
func (st *stream) followCall(key string) *followed {
	return view(st.session, func(its *state) *followed {
		l := its.ledger.live[key]
		if l == nil {
			return nil
		}
		return &followed{use: l.use, since: l.since, last: time.Now()}
	})
}

// sendProgress sends what is new of the calls that run, and returns how soon it is to be called
// again.
func (st *stream) sendProgress(now time.Time) (due time.Duration, err error) {
	due = heartbeatEvery
	if len(st.running) == 0 {
		st.chunk = nil
	}
	for key, f := range st.running {
		if f == nil {
			delete(st.running, key)
			continue
		}
		again, err := st.sendNewest(key, f, now)
		if err != nil {
			return 0, err
		}
		due = min(due, again)
	}
	return due, nil
}

// sendNewest sends what is new of one call: output, else a step, else, when it has been silent for
// long, a heartbeat.
func (st *stream) sendNewest(key string, f *followed, now time.Time) (due time.Duration, err error) {
	l := view(st.session, func(its *state) (l live) {
		if found := its.ledger.live[key]; found != nil {
			l = *found
		}
		return l
	})
	if l.use == nil {
		return heartbeatEvery, nil // its result is on the way
	}
	f.output = l.out
	if f.output != nil && f.output.Total() > f.pos {
		if wait := chunkEvery - now.Sub(f.last); f.pos > 0 && wait > 0 && f.output.Total()-f.pos < chunkBytes {
			return wait, nil
		}
		for range chunksAtOnce {
			if more, err := st.sendChunk(f, now); err != nil || !more {
				return max(0, heartbeatEvery-now.Sub(f.last)), err
			}
		}
		return 0, nil
	}
	switch {
	case l.steps > f.steps:
		f.steps = l.steps
		step := &tooldv1.Step{Message: convert.Clean(l.step.Message), Done: l.step.Done, Total: l.step.Total}
		err = st.sendUpdate(f, now, &tooldv1.Progress{Update: &tooldv1.Progress_Step{Step: step}})
	case now.Sub(f.last) >= heartbeatEvery:
		err = st.sendUpdate(f, now, &tooldv1.Progress{})
	}
	return max(0, heartbeatEvery-now.Sub(f.last)), err
}

// lastProgress sends what the call has printed up to now, which is its end, as far as it is not too
// much, and stops following it. What a background task prints later belongs to no call.
func (st *stream) lastProgress(key string) error {
	f := st.running[key]
	delete(st.running, key)
	if f == nil || f.output == nil {
		return nil
	}
	for end := f.output.Total(); f.pos < end; {
		if more, err := st.sendChunk(f, time.Now()); err != nil || !more {
			return err
		}
	}
	for channel, held := range f.held {
		if err := st.sendText(f, time.Now(), spool.Channel(channel), f.next[channel], held); err != nil {
			return err
		}
	}
	return nil
}

// sendChunk takes the next stretch of a call's output, if there is one, and sends it. A character
// that is cut in two is sent with its second half.
func (st *stream) sendChunk(f *followed, now time.Time) (more bool, err error) {
	if behind := f.output.Total() - f.pos; behind > behindBytes {
		f.pos += behind - behindBytes/2
	}
	if st.chunk == nil {
		st.chunk = make([]byte, chunkBytes-utf8.UTFMax)
	}
	run, err := f.output.Next(f.pos, st.chunk)
	if err != nil && !errors.Is(err, io.EOF) {
		f.pos = f.output.Total() // what cannot be read cannot be shown; the result and ReadOutput say so
		return false, nil
	}
	if len(run.Data) == 0 {
		return false, nil
	}
	f.pos += int64(len(run.Data))
	data, offset, channel := run.Data, run.Offset, run.Channel
	if held := f.held[channel]; run.Offset == f.next[channel]+int64(len(held)) {
		data, offset = append(held, data...), f.next[channel]
	}
	f.held[channel] = nil
	if !st.bytes {
		cut := incomplete(data)
		f.held[channel] = bytes.Clone(data[cut:])
		data = data[:cut]
	}
	return true, st.sendText(f, now, channel, offset, data)
}

// sendText sends a stretch of one channel, unless it is empty.
func (st *stream) sendText(f *followed, now time.Time, channel spool.Channel, offset int64, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	chunk := &tooldv1.OutputChunk{
		Channel: tooldv1.Channel(channel + 1), Offset: uint64(offset), Skipped: uint64(offset - f.next[channel]),
		Data: &tooldv1.OutputChunk_Text{Text: convert.Clean(string(data))},
	}
	if st.bytes {
		chunk.Data = &tooldv1.OutputChunk_Raw{Raw: data}
	}
	f.next[channel] = offset + int64(len(data))
	return st.sendUpdate(f, now, &tooldv1.Progress{Update: &tooldv1.Progress_Output{Output: chunk}})
}

// incomplete returns where a character begins at the end of data whose bytes are not all there;
// len(data) if none does.
func incomplete(data []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(data); back++ {
		if at := len(data) - back; utf8.RuneStart(data[at]) {
			if !utf8.FullRune(data[at:]) {
				return at
			}
			break
		}
	}
	return len(data)
}

func (st *stream) sendUpdate(f *followed, now time.Time, progress *tooldv1.Progress) error {
	f.last = now
	progress.ToolUseId, progress.ToolName, progress.ParentToolUseId = f.use.ID, f.use.Name, f.use.Parent
	progress.SessionId, progress.TurnId = st.session.name, f.use.TurnID
	progress.Elapsed = durationpb.New(now.Sub(f.since))
	return st.out.event(&tooldv1.ExecuteResponse{
		Time: timestamppb.New(now), Turn: f.use.Turn, TurnId: f.use.TurnID,
		Event: &tooldv1.ExecuteResponse_Progress{Progress: progress},
	})
}
