// What went wrong between the client and the daemon, in words for a person. It does not know which command was at work.

package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// whatWentWrong puts an error of a call to the daemon into words: the daemon's own, its reason, and what to do next.
func whatWentWrong(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		if errors.Is(err, context.Canceled) {
			return "stopped"
		}
		return err.Error()
	}
	text, reason := strings.TrimSuffix(s.Message(), "."), reasonOf(s)
	switch {
	case reason != "":
		text += " (" + reason + ")"
	case s.Code() == codes.Canceled:
		return "stopped"
	default: // the connection's own words, which say nothing to a person
		text = cmp.Or(connectionWords[s.Code()], "the exchange with the daemon failed; -v shows how")
	}
	if hint := hints[s.Code()]; hint != "" {
		return text + ". " + hint
	}
	return text + "."
}

func reasonOf(s *status.Status) string {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// connectionWords say what an error means that is the connection's and not the daemon's.
var connectionWords = map[codes.Code]string{
	codes.Unavailable:       "the connection to the daemon broke off",
	codes.Unimplemented:     "the daemon does not know this request",
	codes.ResourceExhausted: "a message was larger than the other side takes",
	codes.DeadlineExceeded:  "the daemon did not answer in time",
}

// hints hold where the daemon's own sentence cannot know what the person at the command line can do.
var hints = map[codes.Code]string{
	codes.NotFound:      "\"toold sessions --all\" lists the sessions.",
	codes.Unavailable:   "\"toold status\" says whether a daemon runs; \"toold start\" starts one.",
	codes.Unimplemented: "This daemon does not serve it; \"toold status\" tells its version.",
	codes.Aborted:       "The session goes on there; \"toold attach\" watches it from beside.",
}
