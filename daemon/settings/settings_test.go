package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/daemon/settings"
)

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       func(*settings.Limits)
		warnings   []string // a part of each
		err        string   // a part of it; empty: none
	}{
		{name: "empty object", text: `{}`, want: func(*settings.Limits) {}},
		{
			name: "both forms of a duration", text: `{"limits":{"drain":"250ms","session_idle":60,"open_calls":5}}`,
			want: func(l *settings.Limits) {
				l.Drain, l.SessionIdle, l.OpenCalls = 250*time.Millisecond, time.Minute, 5
			},
		},
		{
			name: "unserved keys", text: `{"permissions":{},"limits":{"opencalls":5}}`, want: func(*settings.Limits) {},
			warnings: []string{`"permissions" is not served`, "limits.opencalls is not known"},
		},
		{name: "syntax", text: "{\n\n\"limits\": }", err: "settings.json:3"},
		{name: "type", text: "{\"limits\":\n{\"open_calls\":\"x\"}}", err: "settings.json:2"},
		{name: "out of range", text: `{"limits":{"open_calls":0,"drain":"-1s"}}`, err: "limits.open_calls is 0, but must be at least 1\nlimits.drain is negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, warnings, err := settings.Load(path)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want one with %q", err, c.err)
				}
				return
			}
			want := settings.Default()
			c.want(&want)
			if err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
			if !slices.EqualFunc(warnings, c.warnings, strings.Contains) {
				t.Errorf("warnings %q, want ones with %q", warnings, c.warnings)
			}
		})
	}
}

func TestLoadWithoutFile(t *testing.T) {
	got, warnings, err := settings.Load(filepath.Join(t.TempDir(), "none.json"))
	if err != nil || len(warnings) > 0 || got != settings.Default() {
		t.Errorf("got %+v, %q, %v; want the defaults", got, warnings, err)
	}
}

// FuzzLoad: no bytes make Load panic, and a file with an error changes no limit.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"limits":{"drain":"1s"}}`))
	f.Add([]byte(`{"limits":{"drain":1e400}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := settings.Load(path); err != nil && got != settings.Default() {
			t.Errorf("limits changed by a file with an error: %+v, %v", got, err)
		}
	})
}
