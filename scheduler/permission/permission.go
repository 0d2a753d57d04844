// Package permission decides whether a call may run. It is pure: what a call would touch comes in as Facts, a Verdict
// goes out. It does not know how the facts were found, nor how somebody is asked.
package permission

import "fmt"

// A Mode says what becomes of calls that would have to ask.
type Mode uint8

// The modes, as settings files and the wire name them.
const (
	Default           Mode = iota // they ask
	AcceptEdits                   // edits inside the roots are allowed, the rest asks
	Plan                          // whatever is not read-only is denied
	DontAsk                       // they are denied
	BypassPermissions             // they are allowed, except what is critical
)

// String gives the mode's name in settings files.
func (m Mode) String() string {
	return [...]string{"default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"}[m]
}

// A Reach is how far a call would go, by its declared effects.
type Reach uint8

// The reaches, each including the ones before it.
const (
	ReadsInside   Reach = iota // reads in the readable places, or nothing at all
	ReadsOutside               // reads elsewhere
	WritesInside               // writes inside the roots
	WritesOutside              // writes elsewhere
	Runs                       // runs programs whose effects are not known, or contacts a host
)

// A Level tells a person how much a call could do.
type Level uint8

// The levels.
const (
	Safe      Level = iota + 1 // read-only
	Confirm                    // writes inside the roots
	Dangerous                  // runs programs or reaches outside
)

// Facts is what a verdict is derived from.
type Facts struct {
	Reach Reach
	// Where names what decides the reach: a path, or why a command is not read-only. For the reason alone.
	Where string
	// Ask says why the state check wants somebody to be asked; empty: it does not.
	Ask string
	// Critical says why the call could destroy more than a workspace; empty: it could not. It asks in every mode.
	Critical string
}

// A Decision is what a verdict comes to.
type Decision uint8

// The decisions, from the mildest. The join of several is the strictest.
const (
	Allow Decision = iota
	Ask
	Deny
)

// A Verdict is a decision with its reason in words.
type Verdict struct {
	Decision Decision
	Reason   string
	Level    Level
}

// Decide joins facts and mode. What has a reason to ask asks, what is read-only in the readable places is allowed,
// the rest asks; then the mode turns "ask" into what the user wants of it.
func Decide(f Facts, m Mode) Verdict {
	asking := Verdict{Decision: Ask, Reason: reason(f), Level: level(f)}
	if f.Critical == "" && f.Ask == "" && f.Reach == ReadsInside {
		return Verdict{Decision: Allow, Reason: "It is read-only, inside the places that may be read.", Level: Safe}
	}
	asking.Decision = inMode(f, m)
	if asking.Decision == Deny {
		asking.Reason = fmt.Sprintf("The permission mode %s does not allow this call. %s", m, asking.Reason)
	}
	return asking
}

// inMode is what the mode makes of an "ask".
func inMode(f Facts, m Mode) Decision {
	readOnly := f.Reach <= ReadsOutside
	switch {
	case m == DontAsk, m == Plan && !readOnly:
		return Deny
	case m == BypassPermissions && f.Critical == "":
		return Allow
	case m == AcceptEdits && f.Reach == WritesInside && f.Critical == "" && f.Ask == "":
		return Allow
	}
	return Ask
}

func reason(f Facts) string {
	switch {
	case f.Critical != "":
		return f.Critical
	case f.Ask != "":
		return f.Ask
	}
	switch f.Reach {
	case ReadsOutside:
		return fmt.Sprintf("It reads %s, which is outside the roots and the other readable places.", f.Where)
	case WritesInside:
		return fmt.Sprintf("It writes %s.", f.Where)
	case WritesOutside:
		return fmt.Sprintf("It writes %s, which is outside the roots.", f.Where)
	case Runs:
		return fmt.Sprintf("It is not known to be read-only: %s.", f.Where)
	}
	return "It is read-only, inside the places that may be read."
}

func level(f Facts) Level {
	switch {
	case f.Critical != "" || f.Reach == Runs || f.Reach == WritesOutside || f.Reach == ReadsOutside:
		return Dangerous
	case f.Reach == WritesInside || f.Ask != "":
		return Confirm
	}
	return Safe
}
