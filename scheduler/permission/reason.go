package permission

// Reasons as values, and the one place that formats them as sentences.

import (
	"fmt"
	"strings"
)

// A Code names what a reason is about. Codes are part of the contract with clients and do not change; docs/permissions.md lists
// them.
type Code string

// The codes. What a rule could change is marked with (r): it asks only because nothing allows it.
const (
	ByRule          Code = "rule"              // a rule is about the call
	ByRuleDoubtful  Code = "rule_doubtful"     // only the run would show whether a rule is about the call
	ByHook          Code = "hook"              // a hook has decided
	ReadsOnly       Code = "read_only"         // it only reads, where reading is free
	ByAcceptEdits   Code = "accept_edits"      // the mode acceptEdits allows it
	ByConfinement   Code = "confined"          // sandbox.autoAllowBashIfSandboxed allows it
	IsCritical      Code = "critical"          // it may destroy much, or what cannot be brought back
	Unseen          Code = "unseen"            // what it would do cannot be seen in full
	TooManyPaths    Code = "too_many_paths"    // it names more paths than are checked
	Unsandboxed     Code = "unsandboxed"       // it asks to run outside the sandbox
	UnsandboxedOff  Code = "unsandboxed_off"   // and settings switch that off
	LeavesSandbox   Code = "leaves_sandbox"    // it changes what only a process outside the sandbox can
	LeavesOff       Code = "leaves_off"        // and settings switch that off
	RuleBelow       Code = "rule_below"        // a rule is about something in a directory that it changes
	Protected       Code = "protected"         // it changes a file that programs obey, or that holds permissions
	NamesProtected  Code = "names_protected"   // it may change such a file, which it names
	ToolAsks        Code = "tool_asks"         // the tool itself wants the user to be asked
	StartsServer    Code = "starts_server"     // an MCP server of the workspace is to be started
	NotUnderstood   Code = "not_understood"    // (r) no rule can allow it
	OnlyBash        Code = "only_bash"         // (r) only the rule Bash can allow it
	NoRuleExternal  Code = "no_rule_external"  // (r) a tool that something else carries out
	NoRuleTool      Code = "no_rule_tool"      // (r) a tool that is not known to be read-only
	NoRuleCommand   Code = "no_rule_command"   // (r) a command that is not known to be read-only
	NoRuleHere      Code = "no_rule_here"      // (r) a command that is read-only elsewhere
	NoRuleHost      Code = "no_rule_host"      // (r) it contacts a host
	NoRuleWrite     Code = "no_rule_write"     // (r) it writes a file inside the roots
	WritesOutside   Code = "writes_outside"    // (r) it writes a file outside the roots
	ReadsOutside    Code = "reads_outside"     // (r) it reads a file outside the roots and other readable places
	ReadsUnnamed    Code = "reads_unnamed"     // (r) it may read files that it does not name
	NamesOutside    Code = "names_outside"     // (r) a word names a path outside, and what is done with it is not known
	MayWriteOutside Code = "may_write_outside" // (r) the same, and it may be written
	HiddenPath      Code = "hidden"            // (r) the path is hidden from commands
)

// ByNoRule reports whether the code means that nothing allows a part of the call, so that a rule could.
func (c Code) ByNoRule() bool {
	switch c {
	case NotUnderstood, OnlyBash, NoRuleExternal, NoRuleTool, NoRuleCommand, NoRuleHere, NoRuleHost, NoRuleWrite, WritesOutside, ReadsOutside,
		ReadsUnnamed, NamesOutside, MayWriteOutside, HiddenPath:
		return true
	}
	return false
}

// A Reason is one thing that a verdict rests on.
type Reason struct {
	Code Code
	// Part is the part of the call that it is about: a command, a path, a host; empty: the call.
	Part string
	// About is the path, as people are shown it, the host, or the setting.
	About string
	// Detail is a clause with more about it; for a Code whose sentence the caller made, that sentence.
	Detail string
	// Opens is the directory that would become writable as well; empty: none.
	Opens string
	Rule  *Rule   // nil: no rule
	Hook  *Origin // where the hook stands; nil: no hook

	decision Decision // of the hook
	// firm: the mode bypassPermissions does not pass it either.
	firm bool
	// reach: it is about a path that confinement does not keep the call from. wants are rules that would permit just that.
	reach bool
	wants []string
	// needs are rules by which all or some of it would be allowed.
	needs []string
}

// Doubtful reports whether only the run would show that a rule is about the call.
func (r Reason) Doubtful() bool { return r.Code == ByRuleDoubtful }

// same reports whether two reasons are alike in all that String shows.
func (r Reason) same(o Reason) bool {
	return r.Code == o.Code && r.Part == o.Part && r.About == o.About && r.Detail == o.Detail && r.Opens == o.Opens && r.Rule == o.Rule && r.Hook == o.Hook
}

// String returns the reason as a sentence.
func (r Reason) String() string {
	text := r.sentence()
	if r.Opens != "" {
		text += fmt.Sprintf(" %s becomes writable for that.", r.Opens)
	}
	if len(r.wants) > 0 {
		text = fmt.Sprintf("%s: a rule that permits a command to run does not permit that, %s would.", strings.TrimSuffix(text, "."), strings.Join(r.wants, " with "))
	}
	return text
}

func (r Reason) sentence() string {
	switch r.Code {
	case ByRule:
		verb := map[List]string{DenyList: "denies", AskList: "asks about", AllowList: "allows"}[r.Rule.List]
		return fmt.Sprintf("The rule %s in %s %s `%s`.", r.Rule.Text, r.Rule.Origin, verb, r.Part)
	case ByRuleDoubtful:
		return fmt.Sprintf("The rule %s in %s may be about `%s`: %s.", r.Rule.Text, r.Rule.Origin, r.Part, r.Detail)
	case ByHook:
		verb := map[Decision]string{Allow: "allows it", Ask: "wants the user to be asked", Deny: "denies it"}[r.decision]
		if r.Detail != "" {
			verb += ": " + strings.TrimSuffix(r.Detail, ".")
		}
		return fmt.Sprintf("The hook in %s %s.", r.Hook, verb)
	case Unseen:
		return fmt.Sprintf("What it would do cannot be seen in full, because %s, so it may do what is denied or critical.", r.Detail)
	case LeavesSandbox:
		return fmt.Sprintf("It changes %s in %s, which is never made writable as a whole, so it runs outside the sandbox.", r.About, r.Detail)
	case LeavesOff:
		return fmt.Sprintf("It would have to run outside the sandbox, which sandbox.allowUnsandboxedCommands in %s switches off. %s Only sandbox.filesystem.allowWrite opens that directory.", r.About, r.Detail)
	case Protected:
		return fmt.Sprintf("It would change %s, %s.", r.About, r.Detail)
	case NamesProtected:
		return fmt.Sprintf("`%s` names %s, %s, and may change it.", r.Part, r.About, r.Detail)
	case NoRuleExternal:
		return fmt.Sprintf("No rule allows it, and %s, which carries it out, may do anything.", r.About)
	case NoRuleCommand:
		if r.Detail == "" {
			return fmt.Sprintf("No rule allows `%s`, which is not known to be read-only.", r.Part)
		}
		return fmt.Sprintf("No rule allows `%s`, which is not known to be read-only: %s.", r.Part, r.Detail)
	case NoRuleHere:
		return fmt.Sprintf("No rule allows `%s`, which does not count as read-only here: %s.", r.Part, r.Detail)
	case ReadsUnnamed:
		return fmt.Sprintf("`%s` may read files that it does not name.", r.Part)
	case HiddenPath:
		return fmt.Sprintf("It %s %s, which is hidden from commands as a place of credentials or by settings.", r.Detail, r.About)
	}
	if form, simple := sentences[r.Code]; simple {
		return fmt.Sprintf(form, r.About+r.Detail)
	}
	return r.Detail
}

// sentences are those that hold one thing, what the reason is about or its detail.
var sentences = map[Code]string{
	ReadsOnly:       "It is read-only, inside the places that may be read.%s",
	ByAcceptEdits:   "The permission mode acceptEdits allows edits inside the roots.%s",
	ByConfinement:   "It runs confined, and sandbox.autoAllowBashIfSandboxed in %s lets such calls run.",
	TooManyPaths:    "It names more paths than are held against rules, so it may touch what is denied or protected.%s",
	Unsandboxed:     "It asks to run outside the sandbox.%s",
	UnsandboxedOff:  "It asks to run outside the sandbox, which sandbox.allowUnsandboxedCommands in %s switches off; leave dangerouslyDisableSandbox away.",
	NotUnderstood:   "No rule can allow it, because %s.",
	OnlyBash:        "No rule but Bash, which is every command, can allow it, because %s.",
	NoRuleTool:      "No rule allows it, and it is not known to be read-only: %s.",
	NoRuleHost:      "No rule allows it to contact %s.",
	NoRuleWrite:     "No rule allows it to write %s.",
	WritesOutside:   "It writes %s, which is outside the roots.",
	ReadsOutside:    "It reads %s, which is outside the roots and the other readable places.",
	NamesOutside:    "It names %s, which is outside the roots and the other readable places.",
	MayWriteOutside: "It names %s, which is outside the roots, and may write it.",
}
