// Programs that read text and print text. To be checked against
// the manual pages of Debian 12 (GNU coreutils 9.1, grep 3.8, diffutils 3.8, util-linux
// 2.38, jq 1.6) or its own --help (ripgrep 13 to 15).

package shell

import "strings"

// lookup finds a program in the table.
func lookup(name string) (*program, bool) {
	for _, table := range []map[string]*program{textPrograms, filePrograms, systemPrograms, systemReaders, versionPrograms} {
		if p, ok := table[name]; ok {
			return p, true
		}
	}
	return nil, false
}

// namesList is refused where a file of names would be read.
var namesList = map[string]string{"--files0-from": "reads files that are not named"}

const (
	writesFile  = "writes a file"
	runsProgram = "runs a program"
)

var grep = &program{
	flags: "-acEFGhHiIlLnoqPrRsTUvVwxyzZub -# -A: -B: -C: -d: -D: -e: -f< -m: --after-context: --before-context: --context:" +
		" --basic-regexp --extended-regexp --fixed-strings --perl-regexp --binary --binary-files: --byte-offset --color? --colour?" +
		" --count --devices: --directories: --exclude: --exclude-from< --exclude-dir: --file< --files-with-matches --files-without-match" +
		" --group-separator: --no-group-separator --help --ignore-case --no-ignore-case --include: --initial-tab --invert-match" +
		" --label: --line-buffered --line-number --line-regexp --max-count: --no-filename --no-messages --null --null-data" +
		" --only-matching --quiet --silent --recursive --dereference-recursive --regexp: --text --version --with-filename --word-regexp",
	operands: patternOperands, patternBy: "-e -f --regexp --file", any: true, abbrev: true, here: "-r -R --recursive --dereference-recursive",
}

var checksum = &program{
	flags: "-bctwz --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn --help --version",
	any:   true, abbrev: true,
}

var textPrograms = map[string]*program{
	"grep": grep, "egrep": grep, "fgrep": grep,
	"md5sum": checksum, "sha1sum": checksum, "sha224sum": checksum, "sha256sum": checksum, "sha384sum": checksum, "sha512sum": checksum,
	"b2sum":  {flags: checksum.flags + " -l: --length:", any: true},
	"cksum":  {flags: "--help --version", any: true},
	"sum":    {flags: "-rs --sysv --help --version", any: true},
	"shasum": {flags: "-bcUtqsw0 -a: --algorithm: --check --binary --text"},
	"cat": {
		flags: "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting --help --version",
		any:   true, abbrev: true,
	},
	"tac": {flags: "-br -s: --before --regex --separator: --help --version", any: true, abbrev: true},
	"nl": {flags: "-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering: --section-delimiter: --footer-numbering: --header-numbering:" +
		" --line-increment: --join-blank-lines: --number-format: --no-renumber --number-separator: --starting-line-number: --number-width:" +
		" --help --version", any: true},
	"head": {flags: "-qvz -# -c: -n: --bytes: --lines: --quiet --silent --verbose --zero-terminated --help --version", any: true, abbrev: true},
	"tail": {flags: "-fFqrvz -# -c: -n: -s: --bytes: --follow? --lines: --max-unchanged-stats: --pid: --quiet --silent --retry" +
		" --sleep-interval: --verbose --zero-terminated --help --version", any: true, abbrev: true},
	"wc": {refused: namesList, flags: "-clLmw --bytes --chars --lines --max-line-length --words --total: --help --version", any: true, abbrev: true},
	"cut": {flags: "-nsz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --complement --only-delimited --output-delimiter:" +
		" --zero-terminated --help --version", any: true, abbrev: true},
	"tr": {flags: "-cCdst --complement --delete --squeeze-repeats --truncate-set1 --help --version", operands: textOperands, any: true, abbrev: true},
	"sort": {
		flags: "-bcCdfghiMmnRrsuVz -k: -S: -t: --ignore-leading-blanks --batch-size: --check? --debug --dictionary-order --field-separator:" +
			" --general-numeric-sort --human-numeric-sort --ignore-case --ignore-nonprinting --key: --merge --month-sort --numeric-sort" +
			" --parallel: --random-sort --random-source< --reverse --sort: --stable --buffer-size: --unique --version-sort --zero-terminated" +
			" --help --version",
		refused: each(map[string]string{
			"-o --output":              writesFile,
			"--compress-program":       runsProgram,
			"-T --temporary-directory": "chooses where it writes",
			"--files0-from":            "reads files that are not named",
		}),
		abbrev: true,
	},
	"uniq": {
		flags: "-# -cdDiuz -f: -s: -w: --count --repeated --all-repeated? --skip-fields: --group? --ignore-case --skip-chars: --unique" +
			" --zero-terminated --check-chars: --help --version",
		max: 1, flagsFirst: true, abbrev: true,
	},
	"comm":   {flags: "-123iz --check-order --nocheck-order --output-delimiter: --total --zero-terminated --help --version", any: true},
	"join":   {flags: "-iz -1: -2: -a: -e: -j: -o: -t: -v: --ignore-case --check-order --nocheck-order --header --zero-terminated --help --version", any: true},
	"paste":  {flags: "-sz -d: --delimiters: --serial --zero-terminated --help --version", any: true, abbrev: true},
	"fold":   {flags: "-bs -# -w: --bytes --spaces --width: --help --version", any: true, abbrev: true},
	"fmt":    {flags: "-cstu -# -g: -p: -w: --crown-margin --prefix: --split-only --tagged-paragraph --uniform-spacing --width: --goal: --help --version", any: true},
	"expand": {flags: "-i -# -t: --initial --tabs: --help --version", any: true},
	"unexpand": {
		flags: "-a -# -t: --all --first-only --tabs: --help --version", any: true,
	},
	"pr":    {flags: "-adfFJmrtTv -# -D: -h: -l: -N: -o: -W: -w: -S? -e? -i? -n? -s? --columns: --double-space --header: --length: --omit-header --width:", any: true},
	"tsort": {flags: "--help --version", any: true},
	"rev":   {flags: "-0 --zero --help --version", any: true},
	"column": {flags: "-JdeLtx -c: -C: -E: -H: -i: -l: -n: -N: -o: -O: -p: -R: -r: -s: -T: -W: --table --separator: --output-separator: --json" +
		" --table-columns: --table-name: --output-width: --table-right: --table-hide: --table-noheadings --fillrows --help --version", any: true},
	"od":      {flags: "-abcdDfFhHiIlLosvxX -A: -j: -N: -S: -t: -w? --address-radix: --skip-bytes: --read-bytes: --format: --output-duplicates --width?", any: true},
	"hexdump": {flags: "-bcCdovx -e: -f< -n: -s: -L?"},
	"hd":      {flags: "-bcCdovx -e: -f< -n: -s:"},
	"xxd":     {flags: "-abCdeEirupv -c: -g: -l: -n: -o: -s:", max: 1, flagsFirst: true, style: oneByOne},
	"base64":  {flags: "-dDi -w: -b: --decode --ignore-garbage --wrap: --help --version"},
	"base32":  {flags: "-di -w: --decode --ignore-garbage --wrap: --help --version"},
	"strings": {flags: "-# -adfow -s: -n: -t: -e: --all --print-file-name --bytes: --radix: --encoding:", check: noResponseFile},
	"numfmt": {flags: "-z -d: --debug --delimiter: --field: --format: --from: --from-unit: --grouping --header? --invalid: --padding: --round: --suffix:" +
		" --to: --to-unit: --zero-terminated --help --version", operands: textOperands, any: true},
	"shuf": {
		flags: "-ez -n: -r -i: --echo --input-range: --head-count: --repeat --random-source< --zero-terminated", max: 0,
		refused: each(map[string]string{"-o --output": writesFile}),
	},
	"iconv": {flags: "-cls -f: -t: --from-code: --to-code: --list --silent", refused: each(map[string]string{"-o --output": writesFile})},
	"diff": {
		flags: "-# -qsceuyNpTtiEZbwBadrHnP -C: -U: -F: -I: -L: -S: -W: -x: -X< --normal --brief --report-identical-files --context? --unified?" +
			" --ed --rcs --side-by-side --width: --left-column --suppress-common-lines --show-c-function --show-function-line: --label:" +
			" --expand-tabs --initial-tab --tabsize: --suppress-blank-empty --recursive --no-dereference --new-file --unidirectional-new-file" +
			" --ignore-file-name-case --no-ignore-file-name-case --exclude: --exclude-from< --starting-file: --ignore-case" +
			" --ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines" +
			" --ignore-matching-lines: --text --strip-trailing-cr --horizon-lines: --minimal --speed-large-files --color? --palette: --help --version",
		refused: each(map[string]string{"-l --paginate": runsProgram}),
	},
	"cmp": {flags: "-bls -i: -n: --print-bytes --ignore-initial: --verbose --bytes: --quiet --silent --help --version", any: true},
	"jq": {
		flags: "-acCejMnrRsSVh -f< --arg: --argjson: --ascii-output --color-output --monochrome-output --compact-output" +
			" --exit-status --from-file< --indent: --join-output --null-input --raw-input --raw-output --slurp --sort-keys --stream --tab --seq" +
			" --unbuffered --slurpfile: --rawfile: --args --jsonargs --help --version",
		operands: patternOperands, patternBy: "-f --from-file --slurpfile --rawfile", codeBy: "-f --from-file", any: true, check: noModules,
	},
	"rg": ripgrep, "fd": fd, "fdfind": fd,
}

var ripgrep = &program{
	flags: "-0abcFhHiIlLnNopPqsSuUvVwx. -A: -B: -C: -d: -e: -E: -f< -g: -j: -m: -M: -r: -t: -T: --after-context: --before-context: --context:" +
		" --auto-hybrid-regex --binary --block-buffered --byte-offset --case-sensitive --color: --colors: --column --no-column --no-config" +
		" --context-separator: --no-context-separator --count --count-matches --crlf --debug --dfa-size-limit: --encoding: --engine:" +
		" --field-context-separator: --field-match-separator: --file< --files --files-with-matches --files-without-match --fixed-strings" +
		" --follow --no-follow --glob: --glob-case-insensitive --heading --no-heading --help --hidden --no-hidden --iglob: --ignore-case" +
		" --ignore-file< --ignore-file-case-insensitive --include-zero --invert-match --json --line-buffered --line-number --no-line-number" +
		" --line-regexp --max-columns: --max-columns-preview --max-count: --max-depth: --maxdepth: --max-filesize: --mmap --no-mmap --multiline" +
		" --no-multiline --multiline-dotall --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files --no-ignore-global" +
		" --no-ignore-messages --no-ignore-parent --no-ignore-vcs --no-messages --no-require-git --no-unicode --null --null-data" +
		" --one-file-system --only-matching --passthru --passthrough --path-separator: --pcre2 --pcre2-version --no-pcre2 --pretty --quiet" +
		" --regex-size-limit: --regexp: --replace: --smart-case --sort: --sortr: --sort-files --stats --stop-on-nonmatch --text --threads:" +
		" --trace --trim --no-trim --type: --type-add: --type-clear: --type-list --type-not: --unrestricted --version --vimgrep" +
		" --with-filename --no-filename --word-regexp",
	refused: each(map[string]string{
		"--pre --hostname-bin": runsProgram,
		"-z --search-zip":      "runs decompressors",
	}),
	operands: patternOperands, patternBy: "-e -f --regexp --file --files", here: "*", names: "--files --type-list",
}

var fd = &program{
	names: "*",
	flags: "-HIusiFgaLp01qVh -d: -t: -e: -E: -c: -S: -o: -j: --hidden --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --unrestricted" +
		" --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --relative-path --follow --no-follow --full-path" +
		" --print0 --max-depth: --min-depth: --exact-depth: --type: --extension: --exclude: --ignore-file< --color: --size: --changed-within:" +
		" --changed-before: --owner: --threads: --max-results: --quiet --show-errors --base-directory< --path-separator: --search-path<" +
		" --one-file-system --prune --strip-cwd-prefix? --hyperlink? --format: --version --help",
	refused:  each(map[string]string{"-x --exec -X --exec-batch -l --list-details": runsProgram}),
	operands: patternOperands, here: "*",
}

// noModules refuses what makes jq read files that no operand names.
var noModules = eachOperand("its filter may read another file", func(w Word) bool {
	return !strings.Contains(w.Text, "import") && !strings.Contains(w.Text, "include")
})

// noResponseFile refuses @file, from which binutils read more arguments.
func noResponseFile(use usage) string {
	for _, f := range use.flags {
		use.operands = append(use.operands, f.Value)
	}
	return eachOperand("@file holds arguments that are not named here", func(w Word) bool {
		return !strings.HasPrefix(w.prefix, "@") && (w.prefix != "" || w.Text == "")
	})(use)
}
