// The table of git commands that read. No abbreviations: git's own rules for
// them differ by command. To be checked against: the manual of git 2.39 to 2.47.
//
// Absent on purpose, by name: --output (writes), --ext-diff and --textconv (run programs),
// --show-signature, -O and --open-files-in-pager, --stdin (more flags from a pipe),
// --submodule=diff and --recurse-submodules (another repository's settings),
// --ignore-submodules=none and =untracked (those of submodules), --dirty (writes the index),
// --remerge-diff (writes objects), --alternate-refs (runs a program), --filters, ls-remote, fetch,
// archive, hash-object, fsck, help, and whatchanged, which an alias may shadow.

package shell

// gitDiffFlags are those of diff-options.txt.
const gitDiffFlags = " -# -abcDghimpqRrstuwWz -B? -C? -D -G: -I: -l: -M? -S: -U: -X? --cc --color? --no-color --color-moved? --no-color-moved" +
	" --color-moved-ws: --no-color-moved-ws --color-words? --word-diff? --word-diff-regex: --patch --no-patch --unified? --raw --patch-with-raw" +
	" --patch-with-stat --patience --minimal --histogram --anchored: --diff-algorithm: --stat? --stat-width: --stat-count: --stat-name-width:" +
	" --stat-graph-width: --compact-summary --numstat --shortstat --dirstat? --cumulative --dirstat-by-file? --summary --name-only" +
	" --name-status --indent-heuristic --no-indent-heuristic --no-renames --rename-empty --no-rename-empty --check --ws-error-highlight:" +
	" --full-index --binary --abbrev? --no-abbrev --break-rewrites? --find-renames? --find-copies? --find-copies-harder" +
	" --irreversible-delete --diff-filter: --pickaxe-all --pickaxe-regex --skip-to: --rotate-to: --relative? --no-relative --text" +
	" --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines:" +
	" --inter-hunk-context: --function-context --exit-code --quiet --no-ext-diff --no-textconv --ignore-submodules? --src-prefix:" +
	" --dst-prefix: --no-prefix --default-prefix --line-prefix: --ita-invisible-in-index --combined-all-paths" +
	" --no-diff-merges --dd --no-notes --notes? --end-of-options"

// gitRevFlags are those of rev-list-options.txt and pretty-options.txt.
const gitRevFlags = " -i -L: --max-count: --skip: --since: --since-as-filter: --after: --until: --before: --author: --committer:" +
	" --grep-reflog: --grep: --all-match --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp --fixed-strings --perl-regexp" +
	" --merges --no-merges --min-parents: --max-parents: --no-min-parents --no-max-parents --first-parent --exclude-first-parent-only --not" +
	" --all --branches? --tags? --remotes? --glob: --exclude: --exclude-hidden: --reflog --single-worktree --ignore-missing" +
	" --cherry-mark --cherry-pick --left-only --right-only --left-right --cherry --walk-reflogs --merge --boundary --simplify-by-decoration" +
	" --show-pulls --full-history --dense --sparse --simplify-merges --ancestry-path? --date-order --author-date-order --topo-order --reverse" +
	" --no-walk? --do-walk --pretty? --format: --abbrev-commit --no-abbrev-commit --oneline --encoding: --expand-tabs? --no-expand-tabs" +
	" --no-show-signature --relative-date --date: --parents --children --graph --no-graph --show-linear-break? --follow --decorate?" +
	" --no-decorate --decorate-refs: --decorate-refs-exclude: --clear-decorations --source --mailmap --no-mailmap --use-mailmap" +
	" --full-diff --log-size --show-notes? --no-standard-notes --count --objects --missing: --no-object-names --disk-usage? --timestamp --header"

const gitRefFlags = " --count: --sort: --format: --color? --contains? --no-contains? --merged? --no-merged? --points-at? --ignore-case --omit-empty"

// gitRefused are flags of most of the commands that show history or changes.
var gitRefused = each(map[string]string{
	"--output":                               writesFile,
	"--ext-diff --textconv --alternate-refs": runsProgram,
	"--show-signature":                       "runs the signature program",
	"--remerge-diff":                         "writes objects",
	"--stdin":                                "reads more flags",
	"--submodule":                            "reads another repository's settings",
})

var gitLog = &program{flags: "-g -E -F -P -i -n:" + gitDiffFlags + gitRevFlags, refused: gitRefused}

// describeDirty writes the index where it can, whatever GIT_OPTIONAL_LOCKS is.
var describeDirty = &program{
	flags: "--all --tags --contains --abbrev? --candidates: --exact-match --long --match: --exclude: --always --first-parent --dirty?",
}

var gitPrograms = map[string]*program{
	"log": gitLog, "show": gitLog, "range-diff": gitLog, "rev-list": gitLog,
	"reflog": {flags: gitLog.flags, check: gitReflog},
	"stash":  {flags: gitLog.flags + " --include-untracked --only-untracked", check: gitStash},
	"diff": {
		flags:   "-1230 --cached --staged --merge-base --base --ours --theirs --no-index" + gitDiffFlags,
		refused: gitRefused,
	},
	"diff-tree":  {flags: "-v -t -c -n: --root --no-commit-id --merge-base --always --pretty? --format: --oneline" + gitDiffFlags},
	"diff-index": {flags: "--cached --merge-base" + gitDiffFlags},
	"diff-files": {flags: "-0123 --base --ours --theirs" + gitDiffFlags},
	"status": {
		flags: "-sbvz -u? -M? --short --branch --show-stash --porcelain? --long --verbose --untracked-files? --ignore-submodules? --ignored?" +
			" --column? --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames? --null",
	},
	"blame": {
		flags: "-bcefklnpstw -L: -M? -C? -S< --abbrev? --porcelain --line-porcelain --incremental --encoding: --first-parent --reverse --root" +
			" --show-stats --date: --since: --show-name --show-number --show-email --color-lines --color-by-age --ignore-rev: --progress" +
			" --no-progress --minimal --score-debug",
	},
	"annotate": {flags: "-bcefklnpstw -L: -M? -C? --porcelain --date: --since:"},
	"branch": {
		flags: "-ailqrv --all --remotes --list --show-current --verbose --quiet --abbrev? --no-abbrev --column? --no-column --no-color" +
			gitRefFlags,
		check: gitLists("branch", "--list"),
	},
	"tag":          {flags: "-li -n? --list --column? --no-column" + gitRefFlags, check: gitLists("tag", "-l --list")},
	"for-each-ref": {flags: "--shell --perl --python --tcl --exclude:" + gitRefFlags},
	"show-ref":     {flags: "-dhqs --head --heads --branches --tags --dereference --hash? --verify --abbrev? --quiet"},
	"remote":       {flags: "-v --verbose --all --push", check: forms("it changes remotes or asks them", "", "show", "get-url ...")},
	"rev-parse": {
		flags: "-q --abbrev-ref? --short? --verify --quiet --show-toplevel --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree" +
			" --is-inside-git-dir --is-bare-repository --is-shallow-repository --show-prefix --show-cdup --symbolic --symbolic-full-name --all" +
			" --branches? --tags? --remotes? --glob: --exclude: --disambiguate: --show-object-format? --git-path --path-format: --revs-only" +
			" --no-revs --flags --no-flags --default --sq --not --since: --until: --local-env-vars --end-of-options --show-superproject-working-tree",
	},
	"describe": {
		flags:   "--all --tags --contains --abbrev? --candidates: --exact-match --debug --long --match: --exclude: --always --first-parent",
		refused: each(map[string]string{"--dirty --broken": "writes the index"}),
	},
	"shortlog": {flags: "-nsec -w? --numbered --summary --email --committer --group:" + gitRevFlags},
	"config": {
		flags: "-lz --get --get-all --get-regexp --list --show-origin --show-scope --name-only --null --global --system --local --worktree" +
			" --bool --int --bool-or-int --path --type: --includes --no-includes --default: --fixed-value --all --regexp --show-names",
		flagsFirst: true, check: gitConfig,
	},
	"ls-files": {
		flags: "-cdmoiskutvfz -x: -X< --cached --deleted --modified --others --ignored --stage --killed --unmerged --directory" +
			" --no-empty-directory --eol --deduplicate --exclude: --exclude-from< --exclude-per-directory: --exclude-standard" +
			" --error-unmatch --with-tree: --full-name --abbrev? --debug --sparse --format: --resolve-undo",
	},
	"ls-tree": {
		flags: "-drtlz --long --name-only --name-status --object-only --abbrev? --full-name --full-tree --format:",
	},
	"cat-file": {
		flags:   "-tsep --batch? --batch-check? --batch-all-objects --buffer --unordered --follow-symlinks --allow-unknown-type -Z",
		refused: each(map[string]string{"--filters --textconv": runsProgram}),
	},
	"apply": {
		flags: "-Rv -p: --check --stat --numstat --summary --reverse --verbose",
		check: needs("without --check, --stat, --numstat or --summary it changes files", "--check --stat --numstat --summary"),
	},
	"grep": {
		flags: "-# -aiIrvwEGFPnloLzchHpqW -A: -B: -C: -e: -f< -m: --cached --untracked --no-index --text --ignore-case --max-depth: --recursive" +
			" --no-recursive --word-regexp --invert-match --full-name --extended-regexp --basic-regexp --perl-regexp --fixed-strings" +
			" --line-number --column --files-with-matches --name-only --files-without-match --null --only-matching --count --color?" +
			" --no-color --break --heading --show-function --context: --after-context: --before-context: --function-context --max-count:" +
			" --threads: --and --or --not --all-match --quiet --no-exclude-standard --exclude-standard --no-textconv",
		refused: each(map[string]string{"-O --open-files-in-pager --textconv --ext-grep": runsProgram}),
	},
	"worktree":      {flags: "-vz --verbose --porcelain --expire:", check: forms("it changes worktrees", "list")},
	"name-rev":      {flags: "--tags --refs: --exclude: --all --name-only --no-undefined --always"},
	"merge-base":    {flags: "-a --all --octopus --independent --is-ancestor --fork-point"},
	"symbolic-ref":  {flags: "-q --quiet --short --recurse --no-recurse", flagsFirst: true, check: gitSymbolicRef},
	"check-ignore":  {flags: "-qvnz --quiet --verbose --non-matching --no-index"},
	"check-attr":    {flags: "-az --all --cached --source:"},
	"count-objects": {flags: "-vH --verbose --human-readable"},
	"cherry":        {flags: "-v --verbose --abbrev?"},
	"show-branch":   {flags: "-ar --all --remotes --current --topo-order --date-order --sparse --more: --list --independent --no-name --sha1-name --topics"},
	// For the name and address of a person who has set none, git may ask the network what this
	// machine is called.
	"var":       {check: onlyOperands("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "GIT_DEFAULT_BRANCH", "GIT_SHELL_PATH")},
	"version":   {flags: "--build-options", check: gitBare},
	"help":      {check: gitBare},
	"notes":     {check: forms("it changes notes", "", "list ...", "show ...")},
	"submodule": {flags: "-q --quiet --cached --recursive", check: forms("it changes submodules", "", "status ...")}, // a script that comes with git
}

var gitBare = forms("only its list of commands is printed by git itself", "")
