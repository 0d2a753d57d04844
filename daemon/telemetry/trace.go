package telemetry

import (
	"strings"
	"time"
)

// A Tracer makes spans of calls. Its methods are safe for concurrent use, and do not block.
type Tracer interface {
	// Begin begins the span of a call that was accepted then, below the span that the traceparent names; empty: in a trace
	// of its own. A span that is not ended is never seen.
	Begin(traceparent string, accepted time.Time) Span
}

// A Span is that of one call.
type Span interface {
	// Traceparent names the span for those that the call calls.
	Traceparent() string
	// End ends the span, at the present moment, and adds what is known of the call. It is called at most once.
	End(*Call)
}

// Traceparent returns the text if it is a traceparent of W3C Trace Context, version 00, and otherwise an empty text.
func Traceparent(text string) string {
	fields := strings.Split(text, "-")
	if len(text) != 55 || len(fields) != 4 || fields[0] != "00" || len(fields[1]) != 32 || len(fields[2]) != 16 {
		return ""
	}
	for _, field := range fields[1:] {
		if strings.Trim(field, "0123456789abcdef") != "" {
			return ""
		}
	}
	if strings.Trim(fields[1], "0") == "" || strings.Trim(fields[2], "0") == "" {
		return ""
	}
	return text
}
