// Advice for a denied call: the settings that would let it run.

package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toold/toold/scheduler/permission"
)

// An Advice is a change of settings by which a denied call would run, for programs.
type Advice struct {
	// Settings is what is to be added to File, or to the settings of the session if File is empty; nil: nothing is.
	Settings json.RawMessage `json:"settings,omitempty"`
	File     string          `json:"file,omitempty"`
	// Drop are rules that are to be taken out of the files in which they stand.
	Drop []Reason `json:"drop,omitempty"`
}

// SessionSettings is Rights.UserFile where users have no settings file of their own, as in a cluster.
const SessionSettings = "the session's settings (options.settings_json, or --settings of \"toold run\")"

// advise returns what would let a call run; nil: no settings would.
func (r *Rights) advise(f *permission.Facts, v permission.Verdict) *Advice {
	found, ok := permission.Advise(f, r.Policy, v, r.Anchors, r.Modes)
	if !ok || r.UserFile == "" {
		return nil
	}
	advice := &Advice{}
	if text := found.Settings(); text != "" {
		advice.Settings, advice.File = json.RawMessage(text), r.UserFile
		if r.UserFile == SessionSettings {
			advice.File = ""
		}
	}
	for _, rule := range found.Drop {
		advice.Drop = append(advice.Drop, Reason{Rule: rule.Text, List: rule.List.String(), File: rule.Origin.File, Line: rule.Origin.Line})
	}
	if advice.Settings == nil && advice.Drop == nil {
		return nil
	}
	return advice
}

// Words returns the advice as a sentence.
func (a *Advice) Words() string {
	if a == nil {
		return ""
	}
	var steps []string
	for _, g := range a.Drop {
		steps = append(steps, fmt.Sprintf("take the rule %s out of permissions.%s in %s", g.Rule, g.List, permission.Origin{File: g.File, Line: g.Line}))
	}
	if a.Settings != nil {
		steps = append(steps, fmt.Sprintf("add %s to %s", a.Settings, cmp.Or(a.File, SessionSettings)))
	}
	return "To let it run without an answer, " + strings.Join(steps, ", and ") + "."
}

// Advice returns what would let the call run without the question; nil: no settings would.
func (q Question) Advice() *Advice {
	if q.rights == nil {
		return nil
	}
	return q.rights.advise(q.Facts, q.Verdict)
}

// denial is what the call ends with that a verdict denies. What only the mode denies comes with what settings would change.
func (c *Call) denial(v permission.Verdict) error {
	denied := Denial(v)
	if !v.ByMode {
		return denied
	}
	advice := c.rights.advise(c.facts, v)
	if advice == nil {
		return denied
	}
	denied.Message += " " + advice.Words()
	return denied.With(Refusal{Grounds: ReasonsOf(v.Reasons), Advice: advice})
}
