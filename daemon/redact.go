// What of the log is not written: what looks like a secret, values of the daemon's own environment
// that are credentials, and what the administrator's and the user's patterns match.

package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/toold/toold/daemon/convert"
	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/tools/text/redact"
)

// Redacted returns a log that writes marks in place of secrets. Besides what package redact knows
// by its form these are values of the environment, and what the settings of the user's file and of
// the administrator's directory say; changed settings count from the next line on.
func Redacted(log *zap.Logger, user, managed string) *zap.Logger {
	sources := settings.DefaultSources(user)
	sources.ManagedDir = managed
	s := &secrets{files: settings.Open(sources), environ: os.Environ()}
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return &redactingCore{core, s} }))
}

// secrets holds what must not be written.
type secrets struct {
	files   *settings.Store
	environ []string
	latest  atomic.Pointer[knownSecrets]
}

// knownSecrets are the secrets under some settings.
type knownSecrets struct {
	under    *settings.Settings
	redactor *redact.Redactor
}

// now returns the redactor for the settings in force.
func (s *secrets) now() *redact.Redactor {
	under := s.files.Load(settings.Scope{})
	if known := s.latest.Load(); known != nil && known.under == under {
		return known.redactor
	}
	all, _ := under.Patterns()
	filter := under.Sandbox.Filter()
	known := &knownSecrets{under, redact.New(filter.Secrets(s.environ), all)}
	s.latest.Store(known)
	return known.redactor
}

// recorded is what is kept of an input, to be shown later: without secrets, and no more than its
// beginning.
func (d *Daemon) recorded(input json.RawMessage) string {
	if len(input) > 2*convert.ShownInput { // twice, so that no half of a secret is left at the end of what is shown
		input = input[:2*convert.ShownInput]
	}
	return convert.Shortened(convert.Visible(string(d.secrets.now().JSON(input))), convert.ShownInput)
}

// A redactingCore hands entries on without secrets.
type redactingCore struct {
	zapcore.Core
	secrets *secrets
}

func (c *redactingCore) With(fields []zap.Field) zapcore.Core {
	return &redactingCore{c.Core.With(withoutSecrets(c.secrets.now(), fields)), c.secrets}
}

func (c *redactingCore) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return to.AddCore(entry, c)
	}
	return to
}

func (c *redactingCore) Write(entry zapcore.Entry, fields []zap.Field) error {
	r := c.secrets.now()
	entry.Message, entry.Stack = r.Text(entry.Message), r.Text(entry.Stack)
	return c.Core.Write(entry, withoutSecrets(r, fields))
}

// withoutSecrets returns the fields without secrets. It copies them only if one has to change.
func withoutSecrets(r *redact.Redactor, fields []zap.Field) []zap.Field {
	first := slices.IndexFunc(fields, func(f zap.Field) bool {
		return holdsText(f) || f.Type == zapcore.StringType && r.Named(f.Key, f.String) != f.String
	})
	if first < 0 {
		return fields
	}
	out := slices.Clone(fields[:first])
	for _, f := range fields[first:] {
		if holdsText(f) {
			out = append(out, asWritten(r, f)...)
			continue
		}
		if f.Type == zapcore.StringType {
			f.String = r.Named(f.Key, f.String)
		}
		out = append(out, f)
	}
	return out
}

// holdsText reports whether a field that is not a string may be written as one.
func holdsText(f zap.Field) bool {
	switch f.Type {
	case zapcore.ByteStringType, zapcore.ErrorType, zapcore.StringerType, zapcore.ReflectType, zapcore.ArrayMarshalerType,
		zapcore.ObjectMarshalerType, zapcore.InlineMarshalerType:
		return true
	}
	return false
}

// asWritten returns a field as the texts, or as the JSON, that would be written of it, without
// secrets.
func asWritten(r *redact.Redactor, f zap.Field) []zap.Field {
	written := zapcore.NewMapObjectEncoder()
	f.AddTo(written)
	var out []zap.Field
	for _, key := range slices.Sorted(maps.Keys(written.Fields)) {
		value := written.Fields[key]
		if text, is := value.(string); is {
			out = append(out, zap.String(key, r.Named(key, text)))
		} else if data, err := json.Marshal(value); err == nil {
			out = append(out, zap.Reflect(key, json.RawMessage(r.JSON(data))))
		} else {
			out = append(out, zap.String(key, r.Text(fmt.Sprint(value))))
		}
	}
	return out
}
