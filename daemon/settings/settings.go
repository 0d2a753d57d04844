// Package settings turns settings files into merged plain values, each with the file and line that it came from. Its center is
// the table of keys in keys.go: to add a setting, add a row there and use the field that the row sets.
//
// The package decides which file overrides which, and what counts of a workspace that is not trusted. It does not know what
// the values are for, nor who reads them.
package settings

import (
	"os"
	"path/filepath"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/scheduler/permission"
)

// Settings are the settings in force for a scope. They are immutable and safe for concurrent use: callers may share them, and
// compare pointers to detect a change.
type Settings struct {
	// Rules are the rules that count, those of higher files first. Of equal ones the highest is kept.
	Rules []permission.Rule
	// Mode is the mode that sessions begin in; nil: no file names one.
	Mode *Mode
	// BypassDisabled is where the mode bypassPermissions is switched off; nil: nowhere.
	BypassDisabled *permission.Origin
	// AdditionalDirectories may be read beside the roots.
	AdditionalDirectories []Entry
	// PublicDirectories may be read by every session; nil: no file names any, and the built-in ones apply.
	PublicDirectories []Entry
	// Hooks are those that no file disables, those of higher files first. Errors in them are among the warnings.
	Hooks *hook.Set
	// SessionHooks is where the session's own text names hooks; nil: it names none.
	SessionHooks *permission.Origin
	// AllowedHTTPHookURLs are the only URLs that hooks may be sent to; nil: no file names any, and all are allowed.
	AllowedHTTPHookURLs []string
	// Env is added to the environment of calls, by name in byte order.
	Env []Variable
	// Redactions are removed from logs and from the input of hooks, beside what looks like a secret.
	Redactions []Redaction
	// HooksToldAll is set if nothing is removed from the input of hooks.
	HooksToldAll bool
	// Sandbox is how processes are confined.
	Sandbox Sandbox
	// WebSearch is the search engine; nil: no file names one.
	WebSearch *WebSearch
	// MCPServers are the MCP servers that should run, by name. One that is not Approved must not be started; there may be an
	// approved one of the same name beside it, which runs until then.
	MCPServers []MCPServer
	// LSP are the language servers that files set, by language. Other languages are as without files.
	LSP []LanguageServer
	// DiagnosticsAfterEdit is set if the result of an edit includes new findings of the language server.
	DiagnosticsAfterEdit bool
	// Programs are the tools that are programs, by name.
	Programs []Program
	// Preset is which of the built-in tools sessions have.
	Preset Preset
	// DeferAbove is the number of tools above which those of MCP servers are deferred.
	DeferAbove int
	// Deferred name tools that are deferred however many there are; one entry may name a whole MCP server.
	Deferred []Entry
	// Rates are bounds on how often something is called, by subject.
	Rates []Rate
	// Limits are complete: a limit that no file sets has its default.
	Limits Limits
	// Unsynced is set if the journal must not wait for the disk.
	Unsynced bool
	// Traces is where spans of calls are sent.
	Traces Traces
	// Untrusted are the roots whose files hold settings that would count if the root were trusted.
	Untrusted []string
	// Warnings are for the user, each text once: first those about no single file, then in the order of the files.
	Warnings []Warning
	// Broken has a *FileError for each file that cannot be used and has no earlier valid content. They are among the warnings
	// too. Files of a workspace are not included: they do not prevent serving it.
	Broken []error

	lines []Line                       // what files set
	sums  map[string]map[string]string // of each root's files by name, as they were found; see view.sums
	// imports is set if Claude Code's files count.
	imports bool
}

// A Mode is a permission mode with the position of its setting.
type Mode struct {
	Mode   permission.Mode
	Origin permission.Origin
}

// An Entry is one path, domain or variable of a list. A path is absolute and clean, links in it are not resolved.
type Entry struct {
	Text   string
	Origin permission.Origin
}

// A Variable is one entry of the environment.
type Variable struct {
	Name, Value string
	Origin      permission.Origin
}

// A Scope is what settings are for.
type Scope struct {
	Roots   []string // absolute; may be empty
	Session string   // the session's own settings, as JSON; empty: none
	Trusted bool     // all roots are, whatever the trust file has
}

// Sources are the paths of the files. An empty one is not read.
type Sources struct {
	ManagedDir string // holds settings.json and settings.d
	User       string // the user's settings file
	TrustFile  string // has which workspaces are trusted
	Home       string // what ~/ stands for
	ClaudeDir  string // holds the user's settings.json of Claude Code

	Writing func(file string) // is called with a settings file before a rule is written to it; may be nil
}

// DefaultSources returns the places on this system for a user's settings file. What is trusted is kept beside it.
func DefaultSources(user string) Sources {
	s := Sources{ManagedDir: "/etc/toold", ClaudeDir: os.Getenv("CLAUDE_CONFIG_DIR")}
	if absolute, err := filepath.Abs(user); err == nil && user != "" {
		s.User = absolute
		s.TrustFile = filepath.Join(filepath.Dir(absolute), "trust.json")
	}
	if home, err := os.UserHomeDir(); err == nil {
		s.Home = home
		if s.ClaudeDir == "" {
			s.ClaudeDir = filepath.Join(home, ".claude")
		}
	}
	return s
}

// DefaultPath is where the user's settings file is: $XDG_CONFIG_HOME/toold/settings.json, else below ~/.config.
func DefaultPath() string {
	config, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(config, "toold", "settings.json")
}
