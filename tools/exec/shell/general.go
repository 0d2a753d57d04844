// What a command has in common with others of its kind: the words for what it does, without those
// for what it does that to. Only programs that are known not to run what they are given are
// generalised.

package shell

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// General returns the words for what the command does, with " *" behind them for what it is about;
// the command as it stands where nothing in it differs from call to call; empty where either would
// stand for too much, or the command is behind a wrapper, has assignments, or is not literal.
func (c *Command) General() string {
	if !c.Literal || len(c.Assigns) > 0 || c.DenyOnly {
		return ""
	}
	if c.SubcommandSafe {
		return generalised(c.gitWords())
	}
	return generalised(c.Words)
}

// generalised returns the words for what a command does, and a star for what it is about. Empty:
// that would allow too much.
func generalised(words []Word) string {
	for _, runner := range packageRunners {
		if rest, ok := behind(words, strings.Fields(runner)); ok {
			if inner := generalised(rest); strings.HasSuffix(inner, " *") {
				return runner + " " + inner
			}
			return ""
		}
	}
	if len(words) == 0 {
		return ""
	}
	name := words[0].Text
	own, known := generalPrograms[strings.TrimPrefix(name, "./node_modules/.bin/")]
	switch {
	case known && own.bare:
		return name + " *"
	case known:
		return own.generalised(words)
	case strings.Contains(name, "/") && scriptShape.MatchString(name) && !Passing(name): // a script of the workspace
		return name + " *"
	case strings.Contains(name, "/"), listed(tooMuch, unversioned.ReplaceAllString(name, "")):
		return ""
	}
	return exactly(words)
}

// behind returns the words after those that name a runner.
func behind(words []Word, runner []string) (rest []Word, ok bool) {
	if len(words) <= len(runner) {
		return nil, false
	}
	for i, text := range runner {
		if words[i].Text != text {
			return nil, false
		}
	}
	return words[len(runner):], words[len(runner)].Literal
}

func (p generalProgram) generalised(words []Word) string {
	names := []string{words[0].Text}
	for _, word := range words[1:min(3, len(words))] {
		if !word.Literal {
			break
		}
		names = append(names, word.Text)
	}
	one, two := strings.Join(names[:min(2, len(names))], " "), strings.Join(names, " ")
	switch {
	case len(names) == 1:
		if p.targets && len(words) == 1 {
			return one
		}
	case among(p.open, names[1]), p.targets && isName(names[1]):
		return one + " *"
	case len(names) == 3 && among(p.open, names[1]+" "+names[2]), len(names) == 3 && among(p.scripts, names[1]) && (isName(names[2]) || isOwnDir(names[2])):
		return two + " *"
	case among(p.exact, names[1]):
		return exactly(words)
	}
	return ""
}

// among reports whether a list that is separated by commas holds an entry.
func among(list, entry string) bool { return slices.Contains(strings.Split(list, ", "), entry) }

// exactly is the command as it stands, if there is nothing in it that another call would have
// otherwise, and no secret.
func exactly(words []Word) string {
	if len(words) > 5 {
		return ""
	}
	texts := make([]string, len(words))
	for i, word := range words {
		if texts[i] = word.Text; !word.Literal || !isName(strings.TrimLeft(word.Text, "-")) || delicate.MatchString(word.Text) {
			return ""
		}
	}
	return strings.Join(texts, " ")
}

var (
	nameShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_:.-]{0,30}$`)
	fileShape = regexp.MustCompile(`\.[a-z]{1,6}$`)
	delicate  = regexp.MustCompile(`(?i)pass|token|secret|key|auth|login|cred|bearer|force|delete|destroy|drop|mirror|purge|flush|reset|clear|abort|discard|prune|expire|--hard|(?-i:^-[A-Za-z]*[fDBCM])`)
	// unversioned takes the version off the name of a language.
	unversioned  = regexp.MustCompile(`[0-9.]+$`)
	alphanumeric = regexp.MustCompile(`[0-9A-Za-z]+`)
	scriptShape  = regexp.MustCompile(`^(\./)?([A-Za-z0-9_-]+/)*[A-Za-z0-9_.-]+\.(sh|bash|py|rb|pl|js|mjs|ts|php)$`)
)

// isName reports whether a word names a subcommand, a target or a script, not a file, number or
// identifier.
func isName(text string) bool {
	return nameShape.MatchString(text) && !fileShape.MatchString(text) && !Passing(text)
}

// IsRelativeFile reports whether an argument looks like the name of a file in the working directory
// or below.
func IsRelativeFile(word string) bool {
	return !strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "-") && (strings.Contains(word, "/") || fileShape.MatchString(word))
}

// isOwnDir reports whether a word is a directory of the workspace by name.
func isOwnDir(text string) bool {
	return text == "." || strings.HasPrefix(text, "./") && !strings.ContainsAny(text, "*()") && !strings.Contains(text, "..") && !Passing(text)
}

// Passing reports whether there is a part in a text, such as a hash or the number of an issue, that
// next time is another.
func Passing(text string) bool {
	return slices.ContainsFunc(alphanumeric.FindAllString(text, -1), func(run string) bool {
		digits := len(run) - len(strings.Join(strings.FieldsFunc(run, unicode.IsDigit), ""))
		return digits >= 3 || digits >= 2 && len(run) >= 6 || len(run) > 24
	})
}

// A generalProgram has the subcommands of a program that may be left open. The lists are separated
// by ", ".
type generalProgram struct {
	open    string // with whatever they are given
	exact   string // only as they stand, since some arguments would let anything run or leave the machine
	scripts string // with the name of a script, or a directory of the workspace, behind them
	targets bool   // whatever name follows is a target of the project
	bare    bool   // the program itself with whatever it is given
}

var generalPrograms = each(map[string]generalProgram{
	"git": { // most of it can throw work away with the right flag, and fetch can run what it is given
		open:  "add, commit",
		exact: "checkout, switch, merge, stash, tag, branch, cherry-pick, revert, rebase, worktree, push, fetch, pull, gc",
	},
	"npm":                {open: "test, t, ci, audit, outdated, pack", exact: "install, i, start", scripts: "run, run-script"},
	"pnpm":               {open: "test, audit, outdated", exact: "install, i, build, lint, start", scripts: "run"},
	"yarn":               {open: "test", exact: "install, build, lint, format, check, start", scripts: "run"},
	"bun":                {open: "test", exact: "install", scripts: "run"},
	"deno":               {open: "fmt, lint, check", scripts: "task"},
	"go":                 {open: "test, build, vet, fmt, mod, get, generate, list, doc, work, clean", scripts: "run"},
	"cargo":              {open: "build, test, check, clippy, fmt, doc, bench, clean, update, tree", exact: "run"},
	"uv":                 {open: "sync, lock"},
	"poetry":             {open: "install, lock, check"},
	"bundle":             {open: "install, check"},
	"composer":           {open: "install, validate"},
	"docker podman":      {open: "build, ps, images, logs"},
	"docker-compose":     {exact: "up, down, build, ps"},
	"helm":               {open: "list, lint, template"},
	"terraform":          {open: "fmt, validate"},
	"buf":                {open: "generate, lint, build, format"},
	"gh":                 {open: "pr view, pr list, pr create, pr checks, pr diff, pr status, issue view, issue list, issue create, run view, run list, run watch, repo view"},
	"dotnet":             {open: "build, test, restore, format"},
	"mix":                {open: "test, compile, format"},
	"flutter":            {open: "test, build, analyze"},
	"dart":               {open: "test, analyze, format"},
	"stack cabal swift":  {open: "build, test"},
	"zig":                {open: "test, fmt"},
	"bazel":              {open: "build, test, query"},
	"nx ng":              {open: "test, build, lint"},
	"meson":              {open: "setup, compile, test"},
	"pre-commit cypress": {exact: "run"},
	"turbo":              {scripts: "run"},
	"playwright":         {open: "test"},

	"make just task rake invoke ninja gradle ./gradlew mvn ./mvnw": {targets: true},
	"pytest jest vitest mocha phpunit rspec tox eslint prettier biome stylelint tsc black ruff mypy pyright flake8 pylint isort gofmt goimports gofumpt" +
		" golangci-lint staticcheck shellcheck shfmt rustfmt clang-format rubocop markdownlint yamllint actionlint hadolint": {bare: true},
	"pip pip3 kubectl rails npx apt apt-get brew snap conda mamba vagrant heroku": {},
})

// packageRunners run the program behind them, out of the project's own packages.
var packageRunners = []string{
	"npx", "npm exec", "pnpm exec", "bunx", "bundle exec", "poetry run", "uv run", "pipenv run", "python -m", "python3 -m",
}

// tooMuch are programs that are not suggested even as they stand: shells, languages, what runs
// others, clients of the network, and what removes or changes without a way back.
const tooMuch = " bash sh dash zsh ksh fish csh tcsh busybox toybox eval source . exec builtin command python pypy ipython nodejs esno node deno bun ruby" +
	" irb perl php lua luajit tclsh wish osascript pwsh powershell ts-node tsx java groovy scala swift R Rscript julia ghci awk gawk mawk sed" +
	" env sudo doas su runuser pkexec xargs parallel find fd watch setsid ionice flock nohup timeout time nice strace ltrace gdb script" +
	" unbuffer chroot unshare nsenter systemd-run at batch crontab npx pnpx bunx uvx pipx devbox mise direnv nix nix-shell tmux screen expect" +
	" entr ssh scp sftp rsync curl wget nc ncat netcat socat telnet ftp rm rmdir dd shred mkfs chmod chown chgrp kill pkill killall mount" +
	" umount systemctl service shutdown reboot iptables export set alias trap vi vim nvim emacs less more man ln install truncate tar zip" +
	" patch tee kubectl terraform aws gcloud az psql mysql sqlite redis-cli mongo mongosh erl iex elixir lldb hyperfine kotlin open xdg-open "
