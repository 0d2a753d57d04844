package permission

// Reasons as values, and the one place that formats them as sentences.

import (
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
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
	OpensPort       Code = "opens_port"        // a port of the sandbox is to be opened for the user's browser
	NotUnderstood   Code = "not_understood"    // (r) no rule can allow it
	OnlyBash        Code = "only_bash"         // (r) only the rule Bash can allow it
	NoRuleExternal  Code = "no_rule_external"  // (r) a tool that something else carries out
	NoRuleTool      Code = "no_rule_tool"      // (r) a tool that is not known to be read-only
	NoRuleCommand   Code = "no_rule_command"   // (r) a command that is not known to be read-only
	NoRuleHere      Code = "no_rule_here"      // (r) a command that is read-only elsewhere
	NoRuleHost      Code = "no_rule_host"      // (r) it contacts a host
	NoRuleWrite     Code = "no_rule_write"     // (r) it writes a file inside the roots
	NoRuleMemory    Code = "no_rule_memory"    // (r) it changes a file of the tool Memory
	WritesOutside   Code = "writes_outside"    // (r) it writes a file outside the roots
	ReadsOutside    Code = "reads_outside"     // (r) it reads a file outside the roots and other readable places
	ReadsUnnamed    Code = "reads_unnamed"     // (r) it may read files that it does not name
	NamesOutside    Code = "names_outside"     // (r) a word names a path outside, and what is done with it is not known
	MayWriteOutside Code = "may_write_outside" // (r) the same, and it may be written
	HiddenPath      Code = "hidden"            // (r) the path is hidden from commands
)

// byNoRule are the codes that are marked with (r).
var byNoRule = []Code{
	NotUnderstood, OnlyBash, NoRuleExternal, NoRuleTool, NoRuleCommand, NoRuleHere, NoRuleHost, NoRuleWrite, NoRuleMemory,
	WritesOutside, ReadsOutside, ReadsUnnamed, NamesOutside, MayWriteOutside, HiddenPath,
}

// Shows reports whether the sentence of a reason with the code has the part of the call, or the
// rule, that the reason is about.
func (c Code) Shows() (part, rule bool) {
	sentence := sentences[c]
	return strings.Contains(sentence, "{part}"), strings.Contains(sentence, "{rule}") || strings.Contains(sentence, "{doubted}")
}

// ByNoRule reports whether the code means that nothing allows a part of the call, so that a rule could.
func (c Code) ByNoRule() bool { return slices.Contains(byNoRule, c) }

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
	// wants are rules that would permit just the path or host that it is about.
	wants []string
	// needs are rules by which all or some of it would be allowed.
	needs []string
	// command or access is the part that nothing allows; both nil: it is another.
	command *shell.Command
	access  *Access
}

// Doubtful reports whether only the run would show that a rule is about the call.
func (r Reason) Doubtful() bool { return r.Code == ByRuleDoubtful }

// firm reports whether the mode bypassPermissions does not pass it either.
func (r Reason) firm() bool {
	return r.Rule != nil && r.Rule.List != AllowList ||
		slices.Contains([]Code{IsCritical, Unseen, TooManyPaths, Unsandboxed, LeavesSandbox, RuleBelow}, r.Code)
}

// reach reports whether it is about a path that confinement does not keep the call from.
func (r Reason) reach() bool {
	return r.access != nil && r.access.reaches() && (!r.access.Mentioned || r.access.hides()) // else confinement opens nothing for it
}

// same reports whether two reasons are alike in all that String shows.
func (r Reason) same(o Reason) bool {
	return r.Code == o.Code && r.Part == o.Part && r.About == o.About && r.Detail == o.Detail && r.Opens == o.Opens && r.Rule == o.Rule && r.Hook == o.Hook
}

// String returns the reason as a sentence.
func (r Reason) String() string {
	sentence, known := sentences[r.Code]
	if !known {
		sentence = "{detail}"
	}
	if r.Opens != "" {
		sentence += " {opens} becomes writable for that."
	}
	if len(r.wants) > 0 {
		sentence = strings.TrimSuffix(sentence, ".") + ": a rule that permits a command to run does not permit that, {wants} would."
	}
	var text strings.Builder
	for {
		before, rest, found := strings.Cut(sentence, "{")
		if text.WriteString(before); !found {
			return text.String()
		}
		name, rest, _ := strings.Cut(rest, "}")
		text.WriteString(r.named(name))
		sentence = rest
	}
}

// named returns what stands in a sentence for a name in braces.
func (r Reason) named(name string) string {
	switch name {
	case "part":
		return r.Part
	case "about":
		return r.About
	case "why":
		return strings.TrimSuffix(": "+r.Detail, ": ")
	case "opens":
		return r.Opens
	case "wants":
		return strings.Join(r.wants, " with ")
	case "rule":
		return r.Rule.Text + " in " + r.Rule.Origin.String() + [...]string{" denies", " asks about", " allows"}[r.Rule.List]
	case "doubted":
		return r.Rule.Text + " in " + r.Rule.Origin.String()
	case "hook":
		return r.Hook.String() + [...]string{" allows it", " wants the user to be asked", " denies it"}[r.decision]
	}
	return r.Detail
}

// sentences are those of the codes whose Detail is not a sentence itself. {why} is the detail behind a colon, if there is one.
var sentences = map[Code]string{
	ByRule:          "The rule {rule} `{part}`.",
	ByRuleDoubtful:  "The rule {doubted} may be about `{part}`: {detail}.",
	ByHook:          "The hook in {hook}{why}.",
	ReadsOnly:       "It is read-only, inside the places that may be read.",
	ByAcceptEdits:   "The permission mode acceptEdits allows edits inside the roots.",
	ByConfinement:   "It runs confined, and sandbox.autoAllowBashIfSandboxed in {about} lets such calls run.",
	Unseen:          "What it would do cannot be seen in full, because {detail}, so it may do what is denied or critical.",
	TooManyPaths:    "It names more paths than are held against rules, so it may touch what is denied or protected.",
	Unsandboxed:     "It asks to run outside the sandbox.",
	UnsandboxedOff:  "It asks to run outside the sandbox, which sandbox.allowUnsandboxedCommands in {about} switches off; leave dangerouslyDisableSandbox away.",
	LeavesSandbox:   "It changes {about} in {detail}, which is never made writable as a whole, so it runs outside the sandbox.",
	LeavesOff:       "It would have to run outside the sandbox, which sandbox.allowUnsandboxedCommands in {about} switches off. {detail} Only sandbox.filesystem.allowWrite opens that directory.",
	Protected:       "It would change {about}, {detail}.",
	NamesProtected:  "`{part}` names {about}, {detail}, and may change it.",
	NotUnderstood:   "No rule can allow it, because {detail}.",
	OnlyBash:        "No rule but Bash, which is every command, can allow it, because {detail}.",
	NoRuleExternal:  "No rule allows it, and {about}, which carries it out, may do anything.",
	NoRuleTool:      "No rule allows it, and it is not known to be read-only: {detail}.",
	NoRuleCommand:   "No rule allows `{part}`, which is not known to be read-only{why}.",
	NoRuleHere:      "No rule allows `{part}`, which does not count as read-only here: {detail}.",
	NoRuleHost:      "No rule allows it to contact {about}.",
	NoRuleWrite:     "No rule allows it to write {about}.",
	NoRuleMemory:    "No rule allows it to change {about}.",
	WritesOutside:   "It writes {about}, which is outside the roots.",
	ReadsOutside:    "It reads {about}, which is outside the roots and the other readable places.",
	ReadsUnnamed:    "`{part}` may read files that it does not name.",
	NamesOutside:    "It names {about}, which is outside the roots and the other readable places.",
	MayWriteOutside: "It names {about}, which is outside the roots, and may write it.",
	HiddenPath:      "It {detail} {about}, which is hidden from commands as a place of credentials or by settings.",
}
