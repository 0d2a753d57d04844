// Package settings reads the user's settings file into plain values. It does not know what the values are for, and so
// far it reads the limits alone; every other key is reported as not served, never silently dropped.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// Limits bound what the daemon takes on.
type Limits struct {
	MaxRunningCalls  int           // calls that run at once in the whole daemon
	OpenCalls        int           // calls of one session that have not ended
	Sessions         int           // open sessions
	MessageBytes     int           // largest message taken from a client
	OutputBytes      int64         // output that one call may write
	Drain            time.Duration // how long a shutdown waits for running calls
	SessionIdle      time.Duration // a session without stream, running call or background task closes after this
	DetachedQuestion time.Duration // how long a question waits while no client is attached
	IdleExit         time.Duration // a daemon that a client started ends after this without anything to do
}

// Default gives the limits of a daemon without settings.
func Default() Limits {
	return Limits{
		MaxRunningCalls:  max(16, 4*runtime.NumCPU()),
		OpenCalls:        1000,
		Sessions:         256,
		MessageBytes:     16 << 20,
		OutputBytes:      1 << 30,
		Drain:            10 * time.Second,
		SessionIdle:      24 * time.Hour,
		DetachedQuestion: time.Hour,
		IdleExit:         30 * time.Minute,
	}
}

// DefaultPath is where the user's settings file is: $XDG_CONFIG_HOME/toold/settings.json, else below ~/.config.
func DefaultPath() string {
	config, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(config, "toold", "settings.json")
}

// A duration is written as Go writes it ("10s", "24h") or as a number of seconds.
type duration time.Duration

func (d *duration) UnmarshalJSON(text []byte) error {
	var seconds float64
	if json.Unmarshal(text, &seconds) == nil {
		*d = duration(seconds * float64(time.Second))
		return nil
	}
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return errors.New(`a duration is a number of seconds or a text like "10s"`)
	}
	parsed, err := time.ParseDuration(written)
	*d = duration(parsed)
	return err
}

// file is the settings file, as far as it is served.
type file struct {
	Limits struct {
		MaxRunningCalls  *int      `json:"max_running_calls"`
		OpenCalls        *int      `json:"open_calls"`
		Sessions         *int      `json:"sessions"`
		MessageBytes     *int      `json:"message_bytes"`
		OutputBytes      *int64    `json:"output_bytes"`
		Drain            *duration `json:"drain"`
		SessionIdle      *duration `json:"session_idle"`
		DetachedQuestion *duration `json:"detached_question"`
		IdleExit         *duration `json:"idle_exit"`
	} `json:"limits"`
}

// Load reads the limits from the settings file at path. A file that is not there is an empty one. Warnings name keys
// that are not served. The error says what is wrong with the file, and where.
func Load(path string) (limits Limits, warnings []string, err error) {
	limits = Default()
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return limits, nil, nil
	}
	if err != nil {
		return limits, nil, fmt.Errorf("reading settings: %w", err)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return limits, nil, fmt.Errorf("settings file %s%s: %w", path, position(text, err), err)
	}
	if err := limits.apply(&f); err != nil {
		return Default(), nil, fmt.Errorf("settings file %s: %w", path, err)
	}
	return limits, unserved(path, text), nil
}

func (l *Limits) apply(f *file) error {
	var wrong []error
	number := func(name string, to *int, from *int, least int) {
		if from != nil && *from < least {
			wrong = append(wrong, fmt.Errorf("limits.%s is %d, but must be at least %d", name, *from, least))
		} else if from != nil {
			*to = *from
		}
	}
	span := func(name string, to *time.Duration, from *duration) {
		if from != nil && *from < 0 {
			wrong = append(wrong, fmt.Errorf("limits.%s is negative", name))
		} else if from != nil {
			*to = time.Duration(*from)
		}
	}
	number("max_running_calls", &l.MaxRunningCalls, f.Limits.MaxRunningCalls, 1)
	number("open_calls", &l.OpenCalls, f.Limits.OpenCalls, 1)
	number("sessions", &l.Sessions, f.Limits.Sessions, 1)
	number("message_bytes", &l.MessageBytes, f.Limits.MessageBytes, 1<<20)
	span("drain", &l.Drain, f.Limits.Drain)
	span("session_idle", &l.SessionIdle, f.Limits.SessionIdle)
	span("detached_question", &l.DetachedQuestion, f.Limits.DetachedQuestion)
	span("idle_exit", &l.IdleExit, f.Limits.IdleExit)
	if bytes := f.Limits.OutputBytes; bytes != nil {
		if *bytes < 1 {
			wrong = append(wrong, fmt.Errorf("limits.output_bytes is %d, but must be at least 1", *bytes))
		} else {
			l.OutputBytes = *bytes
		}
	}
	return errors.Join(wrong...)
}

// unserved names the keys of the file that nothing reads.
func unserved(path string, text []byte) (warnings []string) {
	var top, limits map[string]json.RawMessage
	_ = json.Unmarshal(text, &top) // it has been read before
	_ = json.Unmarshal(top["limits"], &limits)
	for key := range top {
		if key != "limits" {
			warnings = append(warnings, fmt.Sprintf("%s: %q is not served yet and has no effect", path, key))
		}
	}
	served := []string{"max_running_calls", "open_calls", "sessions", "message_bytes", "output_bytes", "drain", "session_idle", "detached_question", "idle_exit"}
	for key := range limits {
		if !slices.Contains(served, key) {
			warnings = append(warnings, fmt.Sprintf("%s: limits.%s is not known and has no effect", path, key))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// position tells the line of a JSON error, as ":12".
func position(text []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.As(err, &kind) {
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return ""
	}
	return fmt.Sprintf(":%d", 1+bytes.Count(text[:offset], []byte("\n")))
}
