package relay

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// So much is received ahead: some messages, of which only the last may be large.
const (
	aheadMessages = 16
	aheadBytes    = 16 << 10
)

// A heldStream receives messages while those before wait to be passed on.
type heldStream struct {
	grpc.ClientStream
	queue chan arrived // closed at the end
	mark  func() (passes func() error)
	ended error // the error of the last RecvMsg; read when queue is closed
	over  bool  // RecvMsg has returned it
}

// An arrived is a message that was received ahead.
type arrived struct {
	frame  *Frame
	passes func() error
	taken  chan struct{} // closed when it has passed, or is not to; nil: nothing waits for that
}

// Hold returns the stream with a RecvMsg that holds messages back, which must be of type *Frame. It calls mark when a message
// comes, and returns the message only after the function that mark has returned for it returns nil, else that one's error.
// Meanwhile up to 16 more messages are received, so that messages which may pass at the same time go on together; after one of
// more than 16 KiB none is received until it has passed. How the stream ends is not held back. The goroutine that receives is
// added to reading, and ends with the stream.
func Hold(stream grpc.ClientStream, reading *sync.WaitGroup, mark func() (passes func() error)) grpc.ClientStream {
	h := &heldStream{ClientStream: stream, queue: make(chan arrived, aheadMessages), mark: mark}
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
		next := arrived{frame: frame, passes: h.mark()}
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
		h.over = true
		return h.ended
	}
	err := next.passes()
	if next.taken != nil {
		close(next.taken)
	}
	if err != nil {
		next.frame.Free()
		return err
	}
	*message.(*Frame) = *next.frame
	return nil
}

// Trailer returns the stream's trailer once RecvMsg has returned its end; before, there is none.
func (h *heldStream) Trailer() metadata.MD {
	if !h.over {
		return nil
	}
	return h.ClientStream.Trailer()
}
