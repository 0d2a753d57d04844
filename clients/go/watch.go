package toold

import (
	"context"
	"errors"
	"io"
	"iter"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// Watch follows a session without taking part in it. It returns when the daemon has admitted the watcher: no event is missed
// from then on. The sequence can be ranged over once. It ends with the daemon's stream, or with the error that the
// stream has ended with. ctx bounds the stream's life.
func Watch(ctx context.Context, conn *Conn, request *tooldv1.WatchRequest) (iter.Seq2[*tooldv1.ExecuteResponse, error], error) {
	stream, err := conn.Sessions.Watch(ctx, request)
	if err != nil {
		return nil, err
	}
	if _, err := stream.Header(); err != nil {
		return nil, err
	}
	return func(yield func(*tooldv1.ExecuteResponse, error) bool) {
		for {
			response, err := stream.Recv()
			if errors.Is(err, io.EOF) || !yield(response.GetEvent(), err) || err != nil {
				return
			}
		}
	}, nil
}
