package permission

// What suggestions know of programs: which subcommands may be left open what they are about. All else is not known, and
// no rule with a * is made of it. Source: the programs' own help.

// A program says which of its subcommands rules are suggested for. The lists are separated by ", ".
type program struct {
	open    string // with whatever they are given
	exact   string // as they stand alone, since some arguments would let anything run or leave the machine
	scripts string // with the name of a script, or a directory of the workspace, behind them
	targets bool   // whatever name follows is a target of the project
	bare    bool   // the program itself with whatever it is given
}

var programs = map[string]program{
	"git": { // most of it can throw work away with the right flag, and fetch can run what it is given
		open:  "add, commit",
		exact: "checkout, switch, merge, stash, tag, branch, cherry-pick, revert, rebase, worktree, push, fetch, pull, gc",
	},
	"npm":   {open: "test, t, ci, audit, outdated, pack", exact: "install, i, start", scripts: "run, run-script"},
	"pnpm":  {open: "test, audit, outdated", exact: "install, i, build, lint, start", scripts: "run"},
	"yarn":  {open: "test", exact: "install, build, lint, format, check, start", scripts: "run"},
	"bun":   {open: "test", exact: "install", scripts: "run"},
	"deno":  {open: "fmt, lint, check", scripts: "task"},
	"go":    {open: "test, build, vet, fmt, mod, get, generate, list, doc, work, clean", scripts: "run"},
	"cargo": {open: "build, test, check, clippy, fmt, doc, bench, clean, update, tree", exact: "run"},
	"make":  {targets: true}, "just": {targets: true}, "task": {targets: true}, "rake": {targets: true}, "invoke": {targets: true},
	"ninja": {targets: true}, "gradle": {targets: true}, "./gradlew": {targets: true}, "mvn": {targets: true}, "./mvnw": {targets: true},
	"uv": {open: "sync, lock"}, "poetry": {open: "install, lock, check"}, "bundle": {open: "install, check"}, "composer": {open: "install, validate"},
	"docker": {open: "build, ps, images, logs"}, "podman": {open: "build, ps, images, logs"}, "docker-compose": {exact: "up, down, build, ps"},
	"helm": {open: "list, lint, template"}, "terraform": {open: "fmt, validate"}, "buf": {open: "generate, lint, build, format"},
	"gh":     {open: "pr view, pr list, pr create, pr checks, pr diff, pr status, issue view, issue list, issue create, run view, run list, run watch, repo view"},
	"dotnet": {open: "build, test, restore, format"}, "mix": {open: "test, compile, format"}, "flutter": {open: "test, build, analyze"},
	"dart": {open: "test, analyze, format"}, "stack": {open: "build, test"}, "cabal": {open: "build, test"}, "zig": {open: "test, fmt"},
	"swift": {open: "build, test"}, "bazel": {open: "build, test, query"}, "nx": {open: "test, build, lint"}, "ng": {open: "test, build, lint"},
	"meson": {open: "setup, compile, test"}, "pip": {}, "pip3": {}, "kubectl": {}, "rails": {}, "npx": {}, "pre-commit": {exact: "run"},
	"apt": {}, "apt-get": {}, "brew": {}, "snap": {}, "conda": {}, "mamba": {}, "vagrant": {}, "heroku": {}, "turbo": {scripts: "run"},

	"pytest": {bare: true}, "jest": {bare: true}, "vitest": {bare: true}, "mocha": {bare: true}, "phpunit": {bare: true}, "rspec": {bare: true},
	"playwright": {open: "test"}, "cypress": {exact: "run"}, "tox": {bare: true}, "eslint": {bare: true}, "prettier": {bare: true},
	"biome": {bare: true}, "stylelint": {bare: true}, "tsc": {bare: true}, "black": {bare: true}, "ruff": {bare: true}, "mypy": {bare: true},
	"pyright": {bare: true}, "flake8": {bare: true}, "pylint": {bare: true}, "isort": {bare: true}, "gofmt": {bare: true}, "goimports": {bare: true},
	"gofumpt": {bare: true}, "golangci-lint": {bare: true}, "staticcheck": {bare: true}, "shellcheck": {bare: true}, "shfmt": {bare: true},
	"rustfmt": {bare: true}, "clang-format": {bare: true}, "rubocop": {bare: true}, "markdownlint": {bare: true}, "yamllint": {bare: true},
	"actionlint": {bare: true}, "hadolint": {bare: true},
}

// runners run the program behind them, out of the project's own packages.
var runners = []string{
	"npx", "npm exec", "pnpm exec", "bunx", "bundle exec", "poetry run", "uv run", "pipenv run", "python -m", "python3 -m",
}

// tooMuch are programs that are not suggested even as they stand: shells, languages, what runs others, clients of the
// network, and what removes or changes without a way back.
var tooMuch = []string{
	"bash", "sh", "dash", "zsh", "ksh", "fish", "csh", "tcsh", "busybox", "toybox", "eval", "source", ".", "exec", "builtin", "command",
	"python", "pypy", "ipython", "nodejs", "esno", "node", "deno", "bun", "ruby", "irb", "perl", "php", "lua", "luajit", "tclsh", "wish",
	"osascript", "pwsh", "powershell", "ts-node", "tsx", "java", "groovy", "scala", "swift", "R", "Rscript", "julia", "ghci", "awk", "gawk", "mawk", "sed",
	"env", "sudo", "doas", "su", "runuser", "pkexec", "xargs", "parallel", "find", "fd", "watch", "setsid", "ionice", "flock", "nohup", "timeout",
	"time", "nice", "strace", "ltrace", "gdb", "script", "unbuffer", "chroot", "unshare", "nsenter", "systemd-run", "at", "batch", "crontab",
	"npx", "pnpx", "bunx", "uvx", "pipx", "devbox", "mise", "direnv", "nix", "nix-shell", "tmux", "screen", "expect", "entr", "ssh", "scp", "sftp",
	"rsync", "curl", "wget", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "rm", "rmdir", "dd", "shred", "mkfs", "chmod", "chown", "chgrp",
	"kill", "pkill", "killall", "mount", "umount", "systemctl", "service", "shutdown", "reboot", "iptables", "export", "set", "alias", "trap",
	"vi", "vim", "nvim", "emacs", "less", "more", "man", "ln", "install", "truncate", "tar", "zip", "patch", "tee", "kubectl", "terraform", "aws", "gcloud", "az", "psql", "mysql", "sqlite", "redis-cli", "mongo", "mongosh", "erl", "iex", "elixir", "lldb", "hyperfine", "kotlin", "open", "xdg-open",
}
