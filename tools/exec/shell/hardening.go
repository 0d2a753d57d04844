// Settings that keep git from running what a repository names, and from which keys
// of its configuration they do not. Pure data.

package shell

import (
	"fmt"
	"slices"
	"strings"
)

// GitReads is what a git that only reads has in its environment ("NAME=value" each):
// it writes no index on the side, and fetches nothing. Nothing that it prints shows it.
var GitReads = []string{"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none"}

// gitSettings override a repository's or user's settings, for a git that only reads.
// Source: git-config(1) of 2.47.
// Of them log.diffMerges keeps git from writing objects, and diff.autoRefreshIndex keeps
// git diff from writing the index, whatever GIT_OPTIONAL_LOCKS is.
var gitSettings = strings.Fields("core.fsmonitor= core.hooksPath=/dev/null core.pager=cat core.sshCommand=false core.askPass=false" +
	" core.alternateRefsCommand=false credential.helper= gpg.program=false gpg.openpgp.program=false gpg.x509.program=false" +
	" gpg.ssh.program=false log.showSignature=false log.diffMerges=separate diff.autoRefreshIndex=false status.submoduleSummary=false" +
	" protocol.allow=never gc.auto=0 maintenance.auto=false")

// GitHardening is the environment ("NAME=value" each) of a git that the daemon itself
// asks about a repository: no fsmonitor, hooks, pager, signature programs, lazy
// fetch or writing of the index, also where git enters a submodule. It cannot
// turn off filters, textconv and external diff programs, which have names of
// their own: see [GitKeyRuns].
func GitHardening() []string {
	out := append(slices.Clone(GitReads), "GIT_PAGER=cat", "PAGER=cat",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "GIT_EDITOR=false", fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(gitSettings)))
	for i, setting := range gitSettings {
		key, value, _ := strings.Cut(setting, "=")
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return out
}

// GitKeyRuns reports whether a setting of a repository, as `git config --list` prints
// it, makes a git that reads run a program which its user has not chosen. A hook for
// post-index-change is the other thing that can.
func GitKeyRuns(key, value string) bool {
	section, name := splitKey(key)
	switch section {
	case "filter":
		return true
	case "diff":
		return name == "external" || name == "textconv" || name == "command"
	case "lfs": // a filter of the user's own, git-lfs, runs what lfs.extension.NAME.clean names
		return name == "clean" || name == "smudge"
	case "core":
		return name == "fsmonitor" && value != "" && value != "false" || name == "alternaterefscommand"
	case "gpg":
		return name == "program"
	}
	return false
}

// GitKeyFetches reports whether a key of a repository's configuration makes a git that
// reads fetch what it has not, unless it runs with [GitReads].
func GitKeyFetches(key string) bool {
	section, name := splitKey(key)
	return section == "remote" && name == "promisor"
}

// GitReadsMore reports whether a setting, of whatever scope, makes a git that reads
// do more: show signatures, which needs keys, write objects, or run another git for
// the changes in submodules. That one enters even those that only a commit names, and
// obeys their settings.
func GitReadsMore(key, value string) bool {
	switch key {
	case "diff.submodule":
		return value == "diff"
	case "status.submodulesummary", "log.showsignature":
		return value != "false" && value != "0"
	case "log.diffmerges":
		return value == "remerge" || value == "r"
	}
	return false
}

// splitKey returns the first and the last part of a key, in small letters.
func splitKey(key string) (section, name string) {
	section, rest, _ := strings.Cut(strings.ToLower(key), ".")
	return section, rest[strings.LastIndexByte(rest, '.')+1:]
}
