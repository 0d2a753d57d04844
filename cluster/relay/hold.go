package relay

import (
	"sync"

	"google.golang.org/grpc"
)

// So much is received ahead: some messages, of which only the last may be large.
const (
	aheadMessages = 16
	aheadBytes    = 16 << 10
)

// A heldStream receives messages while those before wait to be passed on.
type heldStream struct {
	grpc.ClientStream
	queue  chan arrived // closed at the end
	passes func() error
	ended  error // the error of the last RecvMsg; read when queue is closed
}

// An arrived is a message that was received ahead.
type arrived struct {
	frame *Frame
	taken chan struct{} // closed when RecvMsg returns it; nil: nothing is to wait for that
}

// Hold returns the stream with a RecvMsg that returns a message, which must be a *Frame, only after passes has returned nil
// for it, and else the error of passes. Meanwhile up to 16 messages are received, so that they go on together; one of more than
// 16 KiB is the last of them. The goroutine that receives is added to reading, and ends with the stream.
func Hold(stream grpc.ClientStream, reading *sync.WaitGroup, passes func() error) grpc.ClientStream {
	h := &heldStream{ClientStream: stream, queue: make(chan arrived, aheadMessages), passes: passes}
	reading.Go(h.receive)
	return h
}

func (h *heldStream) receive() {
	defer close(h.queue)
	for {
		frame := &Frame{}
		if h.ended = h.ClientStream.RecvMsg(frame); h.ended != nil {
			return
		}
		next := arrived{frame: frame}
		if frame.data.Len() > aheadBytes {
			next.taken = make(chan struct{})
		}
		select {
		case h.queue <- next:
		case <-h.Context().Done():
			h.ended = h.Context().Err()
			return
		}
		if next.taken == nil {
			continue
		}
		select {
		case <-next.taken:
		case <-h.Context().Done():
		}
	}
}

// RecvMsg returns the next message, or how the stream has ended.
func (h *heldStream) RecvMsg(message any) error {
	next, is := <-h.queue
	if !is {
		return h.ended
	}
	if next.taken != nil {
		close(next.taken)
	}
	if err := h.passes(); err != nil {
		next.frame.Free()
		return err
	}
	*message.(*Frame) = *next.frame
	return nil
}
