// The keys of settings files: what each is read by, and which are known to have no effect. It does not know what may stand
// behind a key.

package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/hook"
	"github.com/toold/toold/tools/nearest"
)

var topKeys = map[string]func(*reader, member){
	"permissions":    (*reader).permissions,
	"hooks":          (*reader).hooks,
	"env":            (*reader).env,
	"limits":         (*reader).limits,
	"journal":        (*reader).journal,
	"sandbox":        (*reader).sandbox,
	keyBypass:        (*reader).bypass,
	"$schema":        func(*reader, member) {},
	keyHookURLs:      (*reader).hookURLs,
	keyImport:        (*reader).importClaude,
	keyNoHooks:       (*reader).noHooks,
	keyManagedHooks:  func(r *reader, m member) { r.facts.managedHooks = r.managedFlag(&m.value, m.key) },
	keyManagedRules:  func(r *reader, m member) { r.facts.managedRules = r.managedFlag(&m.value, m.key) },
	keyHookVariables: (*reader).hookVariables,
	keyRedact:        (*reader).redactions,
	keyRedactHooks:   (*reader).redactHooks,
	keyWebSearch:     (*reader).webSearch,
	keyServers:       (*reader).servers,
	keyEnableAll:     (*reader).enableAll,
	keyEnabled:       (*reader).enabledServers,
	keyDisabled:      (*reader).disabledServers,
	keyLanguages:     (*reader).languages,
	keyDiagnostics:   (*reader).diagnostics,
	keyTools:         (*reader).tools,
}

var permissionKeys = map[string]func(*reader, member){
	"deny":                  (*reader).rules,
	"ask":                   (*reader).rules,
	"allow":                 (*reader).rules,
	"defaultMode":           (*reader).mode,
	"additionalDirectories": func(r *reader, m member) { r.facts.directories = r.entries(&m.value, keyDirectories) },
	"publicDirectories":     func(r *reader, m member) { r.facts.public = r.entries(&m.value, keyPublic) },
	keyBypass:               (*reader).bypass,
	"disableAutoMode":       func(*reader, member) {}, // there is none to disable
}

// claudeKeys mean something to Claude Code and nothing to a daemon that runs tool calls. The list need not be complete:
// what is missing is reported as not known.
var claudeKeys = strings.Fields(`
	agent allowManagedMcpServersOnly allowedMcpServers alwaysThinkingEnabled apiKeyHelper attribution autoMemoryDirectory
	autoMemoryEnabled autoMode autoUpdatesChannel availableModels awsAuthRefresh awsCredentialExport blockedMarketplaces
	channelsEnabled claudeMdExcludes cleanupPeriodDays companyAnnouncements defaultShell deniedMcpServers disableAutoMode
	disableDeepLinkRegistration disableSkillShellExecution editorMode effortLevel
	enabledPlugins extraKnownMarketplaces fastMode feedbackSurveyRate
	fileCheckpointingEnabled fileSuggestion forceLoginMethod forceLoginOrgUUID gcpAuthRefresh includeCoAuthoredBy
	includeGitInstructions language minimumVersion model modelOverrides otelHeadersHelper outputStyle plansDirectory
	pluginConfigs preferredNotifChannel prefersReducedMotion promptSuggestionEnabled respectGitignore
	showClearContextOnPlanAccept showThinkingSummaries showTurnDuration skipDangerousModePermissionPrompt
	skipWebFetchPreflight spinnerTipsEnabled spinnerTipsOverride spinnerVerbs sshConfigs statusLine strictKnownMarketplaces
	syntaxHighlightingDisabled teammateMode terminalProgressBarEnabled theme tui useAutoModeDuringPlan verbose viewMode
	voiceEnabled worktree`)

// silentEvents are Claude Code's events that never fire here.
var silentEvents = strings.Fields(`
	ConfigChange DirectoryAdded Elicitation ElicitationResult FileChanged InstructionsLoaded MessageDisplay PostCompact
	PreCompact Setup Stop StopFailure SubagentStart SubagentStop TaskCompleted TaskCreated TeammateIdle
	UserPromptExpansion UserPromptSubmit WorktreeCreate WorktreeRemove`)

// The names that a misspelt one is compared with.
var (
	topNames        = slices.Sorted(maps.Keys(topKeys))
	permissionNames = slices.Sorted(maps.Keys(permissionKeys))
	eventNames      = slices.Concat(hook.Events, silentEvents)
	handlerNames    = slices.Sorted(maps.Keys(handlerKeys))
)

// meant gives the known name that was probably meant; empty: none is near.
func meant(word string, known []string) string {
	best, least := "", max(1, len(word)/4)+1
	for _, name := range known {
		if len(word) > 2*len(name) {
			continue // so that a huge word costs nothing
		}
		if d := nearest.Distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}
