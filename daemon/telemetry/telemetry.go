// Package telemetry shows operators what calls do: one line of the log, metrics, and spans. A call is reported to it once,
// when it has ended, with the times that the pipeline has taken of it; between its beginning and its end nothing is
// measured here. It does not know sessions, and no package below the daemon knows it.
package telemetry

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/scheduler/pipeline"
)

// A Call is a call that has ended.
type Call struct {
	Session  string
	Use      *pipeline.Use
	Tool     string // as the client called it, but not longer than is shown
	Label    Label
	Accepted time.Time // when it came
	Ended    *pipeline.Ended
	// Texts returns the input and the output as they may be shown. It is not called after Log, Ended and End have returned. Nil:
	// there are none.
	Texts func() (input, output string)
}

// A Label is what a call's tool is called where the number of names must be bounded: the name of a built-in tool, or one
// of the constants.
type Label string

// The labels of tools that are not built in.
const (
	MCP     Label = "mcp"
	Client  Label = "client"
	Custom  Label = "custom"  // a program that the settings name
	Unknown Label = "unknown" // the use named no tool of the session
)

// spare holds the fields of lines that are written: no log keeps them.
var spare = sync.Pool{New: func() any { return new(make([]zap.Field, 0, 10)) }}

// Log writes the line of a call. It has no input and no output.
func Log(log *zap.Logger, c *Call) {
	line := log.Check(zap.InfoLevel, "call")
	if line == nil {
		return
	}
	usage := &c.Ended.Usage
	fields, _ := spare.Get().(*[]zap.Field)
	*fields = append(*fields, zap.String("session", c.Session), zap.String("turn_id", c.Use.TurnID), zap.String("id", c.Use.ID),
		zap.String("tool", c.Tool), zap.String("outcome", c.Ended.Outcome.String()),
		zap.Duration("waited", usage.Waited), zap.Duration("asked", usage.Asked), zap.Duration("hooks", usage.Hooked), zap.Duration("ran", usage.Ran))
	if c.Ended.Fault != nil {
		*fields = append(*fields, zap.String("code", c.Ended.Fault.Code))
	}
	line.Write(*fields...)
	clear(*fields)
	*fields = (*fields)[:0]
	spare.Put(fields)
}
