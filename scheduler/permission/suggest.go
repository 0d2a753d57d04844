package permission

// Rules that would settle the like of a call from now on. They generalise over what differs from call to call, and never
// over what would let anything through.

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/shell"
)

// maxSuggestions is part of the contract with clients.
const maxSuggestions = 5

// Suggest gives allow rules that would have allowed the call, at most 5. None, when no rule could, or when each would allow
// too much.
func Suggest(f *Facts, v Verdict, a Anchors) (rules []string) {
	if !v.Free || f.Hidden != "" {
		return nil
	}
	add := func(rule string) {
		if rule != "" && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	for i := range f.Commands {
		if c := &f.Commands[i]; !c.ReadOnly && !c.Transparent && !c.DenyOnly && isMissing(v, c.Text) {
			add(commandRule(c))
		}
	}
	for i := range f.Accesses {
		access := &f.Accesses[i]
		both := func(o Access) bool { return o.Write && o.Real == access.Real }
		if !access.Write && slices.ContainsFunc(f.Accesses, both) {
			continue
		}
		if slices.ContainsFunc(v.Grounds, func(g Ground) bool { return strings.Contains(g.Text, access.where()) }) {
			add(a.pathRule(access))
		}
	}
	for _, host := range f.Hosts {
		add("WebFetch(domain:" + hostName(host) + ")")
	}
	if f.Opaque && len(f.Commands) == 0 && len(f.Hosts) == 0 && strings.HasPrefix(f.Tool, "mcp__") {
		add(f.Tool)
	}
	return rules[:min(len(rules), maxSuggestions)]
}

func isMissing(v Verdict, part string) bool {
	return slices.ContainsFunc(v.Grounds, func(g Ground) bool { return g.Part == part })
}

// tooMuch are programs of which a rule with a * would let anything run, leave the machine, or destroy: shells, languages,
// programs that run others, clients of the network, and what removes or changes without a way back.
var tooMuch = []string{
	"bash", "sh", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "busybox", "toybox", "eval", "source", ".", "exec", "builtin", "command",
	"python", "python2", "python3", "pypy", "pypy3", "node", "deno", "bun", "ruby", "irb", "perl", "php", "lua", "luajit", "tclsh", "wish",
	"osascript", "pwsh", "powershell", "ts-node", "tsx", "java", "groovy", "scala", "swift", "R", "Rscript", "julia", "ghci", "awk", "gawk", "mawk", "sed",
	"env", "sudo", "doas", "su", "runuser", "pkexec", "xargs", "parallel", "find", "fd", "watch", "setsid", "ionice", "flock", "nohup", "timeout",
	"time", "nice", "strace", "ltrace", "gdb", "script", "unbuffer", "chroot", "unshare", "nsenter", "systemd-run", "at", "batch", "crontab",
	"npx", "pnpx", "bunx", "uvx", "pipx", "devbox", "mise", "direnv", "nix", "nix-shell", "tmux", "screen", "expect", "entr", "ssh", "scp", "sftp",
	"rsync", "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "rm", "rmdir", "dd", "shred", "mkfs", "chmod", "chown", "chgrp",
	"kill", "pkill", "killall", "mount", "umount", "systemctl", "service", "shutdown", "reboot", "iptables", "export", "set", "alias", "trap",
	"vi", "vim", "nvim", "emacs", "less", "more", "man", "tee", "ln", "truncate", "kubectl", "terraform", "aws", "gcloud", "az", "psql", "mysql", "sqlite3",
}

// levels are programs that take subcommands, with how many words name what is run; those in running take the name of
// a script after theirs.
var levels = map[string]int{
	"git": 1, "npm": 1, "pnpm": 1, "yarn": 1, "cargo": 1, "go": 1, "rustup": 1, "pip": 1, "pip3": 1, "poetry": 1, "uv": 1, "docker": 1,
	"docker-compose": 1, "podman": 1, "make": 1, "just": 1, "task": 1, "gradle": 1, "./gradlew": 1, "mvn": 1, "./mvnw": 1, "dotnet": 1,
	"bundle": 1, "rails": 1, "rake": 1, "mix": 1, "composer": 1, "gh": 2, "glab": 2, "brew": 1, "apt": 1, "apt-get": 1, "helm": 1, "bazel": 1,
	"nx": 1, "turbo": 1, "ng": 1, "flutter": 1, "dart": 1, "stack": 1, "cabal": 1, "zig": 1, "buf": 1, "tox": 1, "nox": 1, "cmake": 0,
}

// anything are subcommands that run whatever they are given.
var anything = []string{
	"run", "exec", "x", "dlx", "run-script", "compose", "shell", "runner", "console", "eval", "explore", "create", "start", "api", "alias", "extension", "tool", "generate",
	"config", "-c", "-C", "-e", "submodule", "filter-branch", "bisect", "rebase", "difftool", "mergetool", "remote",
}

// scripted are programs whose "run" names a script of the project: two words more.
var scripted = []string{"npm", "pnpm", "yarn"}

// plainWord is a word that names a subcommand, a target or a script, and no path, number or identifier.
var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z_:.-]*[A-Za-z]$`)

func commandRule(c *shell.Command) string {
	if !c.Literal || len(c.Assigns) > 0 || slices.Contains(tooMuch, path.Base(c.Name)) || strings.HasPrefix(c.Name, "/") || strings.HasPrefix(c.Name, "~") {
		return ""
	}
	if versioned.MatchString(path.Base(c.Name)) {
		return ""
	}
	words := c.Words
	if c.Subcommand != nil && c.SubcommandSafe {
		words = c.Subcommand
	}
	names, ok := naming(words)
	if !ok {
		return ""
	}
	return "Bash(" + strings.Join(names, " ") + " *)"
}

// versioned are languages with their version in the name.
var versioned = regexp.MustCompile(`^(python|ruby|perl|php|lua|node)[0-9.]+$`)

// naming gives the words that say what a command is, without what it is about. False: they would allow anything.
func naming(words []shell.Word) (names []string, ok bool) {
	name := words[0].Text
	names = []string{name}
	depth, known := levels[name]
	if strings.ContainsAny(name, " *()") {
		return nil, false
	}
	for i := 1; known && i <= depth && i < len(words); i++ {
		word := words[i]
		if !word.Literal || !plainWord.MatchString(word.Text) && !isShort(word.Text) {
			return nil, false
		}
		names = append(names, word.Text)
		if !slices.Contains(anything, word.Text) {
			continue
		}
		if !slices.Contains(scripted, name) || word.Text != "run" && word.Text != "run-script" || i+1 >= len(words) || !words[i+1].Literal || !plainWord.MatchString(words[i+1].Text) {
			return nil, name == "go" && word.Text == "generate"
		}
		return append(names, words[i+1].Text), true
	}
	return names, !known || depth == 0 || len(names) > 1 || name == "make"
}

// isShort is a subcommand of one letter or two, such as "ci" and "i".
func isShort(text string) bool {
	return len(text) > 0 && len(text) <= 2 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
}

// pathRule generalises to the directory. Outside the roots that directory must be worth a name of its own: not a child
// of /, not home.
func (a Anchors) pathRule(access *Access) string {
	tool := "Read"
	if access.Write {
		tool = "Edit"
	}
	dir := access.Real
	if !access.Dir {
		dir = path.Dir(dir)
	}
	if access.Real != access.Named || strings.ContainsAny(dir, `*?[]\()!`) || protectedPath(access.Real, 0) != "" {
		return ""
	}
	for _, root := range a.Roots {
		switch rel, ok := below(root, dir); {
		case ok && rel == "." && path.Ext(access.Real) == "":
			return ""
		case ok && rel == ".":
			return tool + "(./*" + path.Ext(access.Real) + ")"
		case ok:
			return tool + "(./" + rel + "/**)"
		}
	}
	if access.Write {
		return ""
	}
	if rel, ok := below(a.Home, dir); ok && a.Home != "" {
		if rel == "." || strings.HasPrefix(rel, ".") {
			return ""
		}
		return tool + "(~/" + rel + "/**)"
	}
	if strings.Count(dir, "/") < 2 {
		return ""
	}
	return tool + "(/" + dir + "/**)"
}
