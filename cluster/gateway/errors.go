// What a client is told when a node does not answer.

package gateway

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/toold/toold/daemon/apierror"
)

// retryAfter is when a client that was told that no node serves it tries again.
const retryAfter = time.Second

// infoOf returns the ErrorInfo of a status of toold; nil: it has none.
func infoOf(err error) *errdetails.ErrorInfo {
	if err == nil {
		return nil
	}
	for _, detail := range status.Convert(err).Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is && info.GetDomain() == "toold" {
			return info
		}
	}
	return nil
}

func reasonOf(err error) string { return infoOf(err).GetReason() }

// lost reports whether an error means that the node is gone, not that it has
// answered: there is no connection, or it was closed here or there.
func lost(ctx context.Context, err error) bool {
	code := status.Code(err)
	return ctx.Err() == nil && (code == codes.Unavailable || code == codes.Canceled)
}

// endOfNode returns the status with which an RPC ends whose node's side has ended.
// A status of the daemon's stays as it is.
func endOfNode(ctx context.Context, err error) error {
	if err == nil || infoOf(err) != nil || !lost(ctx, err) {
		return err
	}
	lost := apierror.New(codes.Unavailable, "node_lost", "The node that had the workspace was lost. Attach again, behind the last record that you have: another node will have it.")
	return tryAgain(lost, err)
}

// tryAgain adds to an error that the client is to try again soon.
func tryAgain(refused *apierror.Error, cause error) error {
	refused.Cause = cause
	refused.Details = []protoadapt.MessageV1{&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)}}
	return refused
}

// endOfClient returns the status for a client that sends no first message.
func endOfClient(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
