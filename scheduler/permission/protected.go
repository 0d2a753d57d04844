// Files that run something, or weaken protection, the next time another program uses them. Writing them asks even where a
// rule or acceptEdits would allow it. The list is our own, after what has been abused; programs' manuals name the files. Only
// names are compared, not what is in a file, nor which links lead to it.

package permission

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/tools/fs/gitdir"
	"github.com/toold/toold/tools/fs/pathname"
)

// protectedNames are protected wherever they lie: shells, git, package managers, build tools and editors read them
// unasked.
var protectedNames = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv",
	".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".pam_environment",
	".gitconfig", ".gitmodules", ".gitattributes", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs",
	"bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazeliskrc", ".ripgreprc", ".pre-commit-config.yaml", "lefthook.yml",
	"lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", ".devcontainer.json", ".mcp.json", ".claude.json", ".netrc", ".pypirc",
	".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".dir-locals-2.el", ".gdbinit", ".lldbinit", ".pdbrc", ".Rprofile",
	"gradle-wrapper.properties", "maven-wrapper.properties", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml",
}

// protectedDirs are protected with all that is in them. An entry of two names, which may be a file, is protected where it
// lies in a directory of the first name.
var protectedDirs = []string{
	".vscode", ".idea", ".zed", ".helix", ".cursor", ".codex", ".gemini", ".husky", ".githooks", ".github/workflows", ".hg/hgrc",
	".devcontainer", ".toold", ".claude", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".cargo", ".yarn", ".mvn", ".config/git", ".config/gh", ".config/gcloud", ".config/fish", ".config/systemd", ".config/autostart",
	".config/toold", ".config/claude",
}

// ProtectedIn returns the paths at the top of a directory that are protected, whether they exist or not. It leaves out what
// makes git run something: only the caller knows where git's directories are.
func ProtectedIn(dir string) (list []string) {
	for _, name := range slices.Concat(protectedNames, protectedDirs) {
		list = append(list, path.Join(dir, name))
	}
	return list
}

// KeptShut reports whether the sandbox keeps a directory from being changed in a place that is writable.
func KeptShut(dir string) bool { return path.Base(dir) != ".git" && protectedPath(dir, 0) != "" }

// protected returns what a write would meddle with; empty: nothing that is protected. The names in guarded are clean.
func protected(a *Access, guarded []guard) string {
	if !a.Write || a.Runs != "" {
		return a.Runs
	}
	for _, name := range []string{a.Real, a.Named} {
		if what := meddles(name, a.Missing, guarded); what != "" {
			return what
		}
	}
	return ""
}

// meddles returns what a write of that name would meddle with; empty: nothing.
func meddles(name string, missing int, guarded []guard) string {
	for _, own := range guarded {
		if pathname.Within(own.path, name) {
			return own.what
		}
	}
	return protectedPath(name, missing)
}

// tampering returns the grounds to ask about what is protected. What lies in something that is named already is not named
// again.
func (c *call) tampering(guarded []guard) (found []Reason) {
	var written []*Access
	for i := range c.Accesses {
		if a := &c.Accesses[i]; protected(a, guarded) != "" {
			written = append(written, a)
		}
	}
	for _, a := range written {
		g := Reason{Code: Protected, About: a.where(), Detail: protected(a, guarded), Opens: a.Opens, Part: a.Part}
		inOther := func(o *Access) bool { return o.Real != a.Real && pathname.Within(o.Real, a.Real) }
		if !slices.ContainsFunc(written, inOther) && !slices.ContainsFunc(found, g.same) {
			found = append(found, g)
		}
	}
	for _, g := range c.meddling(guarded) {
		if !slices.ContainsFunc(found, func(k Reason) bool { return k.Part == g.Part }) {
			found = append(found, g)
		}
	}
	return found
}

// protectedPath judges one name, of which missing components at the end do not exist: what lies in a git directory that
// does not exist yet is free, since making a new repository is. Letter case does not count, as some file systems
// ignore it.
func protectedPath(name string, missing int) string {
	parts := strings.Split(strings.ToLower(strings.Trim(name, "/")), "/")
	if slices.ContainsFunc(protectedNames, func(name string) bool { return strings.EqualFold(name, parts[len(parts)-1]) }) {
		return "which programs obey by themselves"
	}
	for i, part := range parts {
		rest := parts[i+1:]
		switch {
		case part == ".git" && len(rest) >= missing && makesRun(rest):
			return "which can make git run programs"
		case part == ".git" && len(rest) >= missing:
			return "which is git's own state"
		case part == ".claude" && len(rest) > 0 && rest[0] == "worktrees": // whole checkouts lie there
		case slices.Contains(protectedDirs, part), i > 0 && slices.Contains(protectedDirs, parts[i-1]+"/"+part):
			return "which programs obey by themselves"
		}
	}
	return ""
}

// makesRun reports whether what lies there in a git directory makes git run something. The directory itself counts: to move
// or remove it is to change all of it. So do those of submodules. The rest is git's own state, which a write by another
// program can bring to name another commit, hide files, or lose work.
func makesRun(rest []string) bool {
	return len(rest) == 0 || rest[0] == "modules" || gitdir.Runs(path.Join(rest...))
}
