// What a verdict rests on, in words for the user: rules with their places, and what a suggested rule would let
// through. Pure.

package terminal

import (
	"fmt"
	"strings"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
)

// RuleWords names a ground's rule and where it stands; empty when the ground is not a rule.
func RuleWords(g *tooldv1.Ground) string {
	if g.GetRule() == "" {
		return ""
	}
	return strings.TrimSpace(VisibleLine(fmt.Sprintf("%s rule %s", g.GetList(), g.GetRule())) + at(" in ", g))
}

// at is where a ground's rule or hook stands, behind before; empty when it is not known.
func at(before string, g *tooldv1.Ground) string {
	switch {
	case g.GetFile() == "":
		return ""
	case g.GetLine() == 0:
		return before + VisibleLine(g.GetFile())
	default:
		return before + fmt.Sprintf("%s:%d", VisibleLine(g.GetFile()), g.GetLine())
	}
}

// Shows reports whether the sentence of a ground has the part of the call, and its rule and place,
// already.
func Shows(g *tooldv1.Ground) (part, rule bool) { return permission.Code(g.GetCode()).Shows() }

// Covers returns what a suggested rule would be about; empty for a form that is not known here.
func Covers(rule string) string {
	tool, specifier, specified := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	switch {
	case !specified:
		return "every call of " + tool
	case tool == "Bash":
		return coversCommands(specifier)
	case tool == "Read":
		return "reading " + coversPaths(specifier)
	case tool == "Edit":
		return "reading and changing " + coversPaths(specifier)
	case tool == "WebFetch":
		return coversHosts(strings.TrimPrefix(specifier, "domain:"))
	default:
		return ""
	}
}

func coversCommands(pattern string) string {
	for _, rest := range []string{" *", ":*"} {
		if words, ok := strings.CutSuffix(pattern, rest); ok && !strings.Contains(words, "*") {
			return fmt.Sprintf("%q, alone or with anything behind it", words)
		}
	}
	if strings.Contains(pattern, "*") {
		return "commands of this form"
	}
	return "this very command"
}

func coversPaths(pattern string) string {
	for _, form := range [][2]string{{"/**", "everything below "}, {"/*", "what stands directly in "}} {
		if dir, ok := strings.CutSuffix(pattern, form[0]); ok {
			if dir == "." {
				dir = "the root"
			}
			return form[1] + strings.Replace(dir, "//", "/", 1)
		}
	}
	return pattern
}

func coversHosts(host string) string {
	if parent, ok := strings.CutPrefix(host, "*."); ok {
		return "every page of the hosts below " + parent + ", also for commands"
	}
	return "every page of " + host + ", also for commands"
}
