// What a call that was judged read-only has to run with: the part of the
// environment that steers no program elsewhere, and settings that keep git
// from running what a repository names. Pure data and filters; it reads no
// environment itself.

package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// defaultPath is used when nothing of PATH is left: bash without PATH would
// look in the working directory.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// readOnlyNames are kept for a read-only call.
var readOnlyNames = map[string]bool{
	"HOME": true, "USER": true, "LOGNAME": true, "TERM": true, "TMPDIR": true, "LANG": true, "LANGUAGE": true, "TZ": true,
	"NO_COLOR": true, "FORCE_COLOR": true, "CLICOLOR": true, "COLUMNS": true, "LINES": true, "PWD": true, "CI": true,
	"LC_ALL": true, "LC_COLLATE": true, "LC_CTYPE": true, "LC_MESSAGES": true, "LC_MONETARY": true, "LC_NUMERIC": true, "LC_TIME": true,
	"NODE_ENV": true, "RUST_BACKTRACE": true,
}

// systemPlaces are where a system keeps programs that only its owner installs.
var systemPlaces = strings.Fields("/bin /sbin /lib /lib64 /usr /opt /snap /var/lib/snapd /nix /run/current-system /run/wrappers /etc/profiles" +
	" /home/linuxbrew/.linuxbrew /Library /System")

// homePlaces are where installers put programs below the home directory.
var homePlaces = strings.Fields("bin go .local .cargo .nvm .fnm .asdf .pyenv .rbenv .nodenv .goenv .bun .deno .sdkman .dotnet .nix-profile" +
	" .linuxbrew .npm-global .yarn .opam .ghcup .cabal .juliaup")

// ReadOnlyEnv is the part of env ("NAME=value" each) that a read-only call may
// see, and what it needs besides. Of PATH only the places stay where programs
// are installed, by the system or below home (absolute, and that of the daemon's
// user), so that an entry which an earlier call has exported leads nowhere; and of those no shims, which ask the working
// directory what to run or fetch, and none inside one of roots (absolute;
// compared by component, so the caller resolves links in both). HOME, TMPDIR
// and PWD are kept only if absolute. A locale whose characters could hide a
// quote or a backslash is left out.
func ReadOnlyEnv(env []string, home string, roots []string) []string {
	out := []string{
		"GOTOOLCHAIN=local", // `go version` would fetch the toolchain that go.mod asks for
		"PAGER=cat",
		"PYTHONDONTWRITEBYTECODE=1",
		"PIP_CONFIG_FILE=/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"GH_NO_UPDATE_NOTIFIER=1",
		"npm_config_logs_max=0", // npm would keep a log of being asked for its version
	}
	search, places := "", append(slices.Clip(systemPlaces), joined(home, homePlaces)...)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case name == "PATH":
			search = safePath(value, places, roots)
		case !readOnlyNames[name]:
		case setsCharset(name) && !plainCharset(value):
		case (name == "HOME" || name == "TMPDIR" || name == "PWD") && !path.IsAbs(value):
		default:
			out = append(out, kv)
		}
	}
	if search == "" {
		search = defaultPath
	}
	return append(out, "PATH="+search)
}

func joined(dir string, names []string) (paths []string) {
	for _, name := range names {
		paths = append(paths, path.Join(dir, name))
	}
	return paths
}

// openPlaces are where anybody may put a program.
var openPlaces = []string{"/tmp", "/var/tmp", "/usr/tmp", "/dev"}

func safePath(list string, places, roots []string) string {
	var keep []string
	for _, dir := range strings.Split(list, ":") {
		if clean := path.Clean(dir); within(clean, places) && !within(clean, roots) && !within(clean, openPlaces) && path.Base(clean) != "shims" {
			keep = append(keep, dir)
		}
	}
	return strings.Join(keep, ":")
}

func within(dir string, roots []string) bool {
	for _, root := range roots {
		root = path.Clean(root)
		if dir == root || root == "/" || strings.HasPrefix(dir, root+"/") {
			return true
		}
	}
	return false
}

// gitSettings override what a repository or a user says, for a git that only
// reads. Source: git-config(1) of 2.47.
var gitSettings = [][2]string{
	{"core.fsmonitor", ""},
	{"core.hooksPath", "/dev/null"},
	{"core.pager", "cat"},
	{"core.sshCommand", "false"},
	{"core.askPass", "false"},
	{"core.alternateRefsCommand", "false"},
	{"credential.helper", ""},
	{"gpg.program", "false"},
	{"gpg.openpgp.program", "false"},
	{"gpg.x509.program", "false"},
	{"gpg.ssh.program", "false"},
	{"log.showSignature", "false"},
	{"log.diffMerges", "separate"},     // remerge writes objects
	{"diff.autoRefreshIndex", "false"}, // git diff writes the index, whatever GIT_OPTIONAL_LOCKS says
	{"status.submoduleSummary", "false"},
	{"protocol.allow", "never"},
	{"gc.auto", "0"},
	{"maintenance.auto", "false"},
}

// GitHardening is the environment ("NAME=value" each) that a git judged
// read-only runs with: no fsmonitor, hooks, pager, signature programs, lazy
// fetch or writing of the index, also where git enters a submodule. It cannot
// turn off filters, textconv and external diff programs, which have names of
// their own: see [GitKeyRuns].
func GitHardening() []string {
	out := []string{
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_PAGER=cat", "PAGER=cat",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "GIT_EDITOR=false",
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(gitSettings)),
	}
	for i, kv := range gitSettings {
		out = append(out, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	return out
}

// GitKeyRuns says whether a key of a repository's configuration, as `git
// config --list` prints it, can make a reading git run a program that
// [GitHardening] does not stop. A repository with such a key, or with a
// submodule that has one, is not safe to read outside a sandbox.
func GitKeyRuns(key string) bool {
	section, name := splitKey(key)
	switch section {
	case "filter":
		return true
	case "diff":
		return name == "external" || name == "textconv" || name == "command"
	case "lfs": // a filter of the user's own, git-lfs, runs what lfs.extension.NAME.clean names
		return name == "clean" || name == "smudge"
	}
	return false
}

// GitDiffsSubmodules says whether a setting, of whatever scope, makes a git that
// shows changes run another git for those in submodules. It enters even those
// that only a commit names, and obeys their settings.
func GitDiffsSubmodules(key, value string) bool { return key == "diff.submodule" && value == "diff" }

// GitKeyStopped says whether a key of a repository's configuration can make a
// reading git run a program, or fetch, where [GitHardening] is not in force.
// A hook for post-index-change is the other thing that can.
func GitKeyStopped(key string) bool {
	section, name := splitKey(key)
	switch section {
	case "core":
		return name == "fsmonitor" || name == "alternaterefscommand"
	case "gpg":
		return name == "program"
	case "remote":
		return name == "promisor"
	case "status": // it enters submodules that only a commit names
		return name == "submodulesummary"
	}
	return false
}

// splitKey returns the first and the last part of a key, in small letters.
func splitKey(key string) (section, name string) {
	section, rest, _ := strings.Cut(strings.ToLower(key), ".")
	return section, rest[strings.LastIndexByte(rest, '.')+1:]
}
