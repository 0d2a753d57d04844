// Programs that show files, directories and paths, and the few that change
// files in ways plain enough to say which. To be checked against
// the manual pages of Debian 12 (coreutils 9.1, file 5.44, tree 2.1).

package shell

var filePrograms = map[string]*program{
	"ls": {
		flags: "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size: --ignore-backups --color?" +
			" --directory --dired --classify? --file-type --format: --full-time --group-directories-first --no-group --human-readable --si" +
			" --dereference-command-line --dereference-command-line-symlink-to-dir --dereference --hide: --hyperlink? --indicator-style:" +
			" --inode --ignore: --kibibytes --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name" +
			" --quoting-style: --reverse --recursive --size --sort: --time: --time-style: --tabsize: --width: --context --zero --help --version",
		any: true, abbrev: true, here: "*",
	},
	"dir": {flags: "-aAlhrRtS1d", any: true, here: "*"},
	"stat": {
		flags: "-Lft -c: --dereference --file-system --cached: --format: --printf: --terse --help --version",
		any:   true, abbrev: true,
	},
	"file": {
		flags: "-bdEhikLlNnrS0 -F: -P: -e: --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension --keep-going" +
			" --no-pad --no-buffer --print0 --raw --separator: --exclude: --exclude-quiet: --list --version --help --apple",
		refused: map[string]string{
			"-f": "names a file of files", "--files-from": "names a file of files", "-m": "names a file of rules", "--magic-file": "names a file of rules",
			"-C": writesFile, "--compile": writesFile, "-z": "runs decompressors", "-Z": "runs decompressors",
			"-p": "sets times", "--preserve-date": "sets times", "-s": "reads devices",
		},
	},
	"du": {
		refused: namesList,
		flags: "-0abcDHhklLmPSsx -B: -d: -t: -X< --null --all --apparent-size --block-size: --bytes --total --dereference-args --max-depth:" +
			" --human-readable --inodes --dereference --count-links --no-dereference --separate-dirs --si --summarize" +
			" --threshold: --time? --time-style: --exclude-from< --exclude: --one-file-system --help --version",
		any: true, abbrev: true, here: "*",
	},
	"df": {
		flags: "-ahHiklPTv -B: -t: -x: --all --block-size: --human-readable --si --inodes --local --no-sync --output? --portability" +
			" --print-type --total --type: --exclude-type: --help --version",
	},
	"tree": {
		flags: "-aAcCdDfFgGhijJlnNpqQrsStuUvxX -H: -I: -L: -P: -T: --charset: --device --dirsfirst --filelimit: --filesfirst --fromfile --gitignore" +
			" --gitfile< --ignore-case --info --inodes --matchdirs --metafirst --noreport --prune --si --sort: --timefmt: --du --version --help",
		refused: map[string]string{"-o": writesFile, "-R": writesFile}, here: "*", style: apart,
	},
	"basename": {flags: "-az -s: --multiple --suffix: --zero --help --version", operands: textOperands, any: true},
	"dirname":  {flags: "-z --zero --help --version", operands: textOperands, any: true},
	"realpath": {flags: "-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to: --relative-base:" +
		" --strip --no-symlinks --zero --help --version", any: true},
	"readlink": {flags: "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero" +
		" --help --version", any: true},
	"pwd":      {flags: "-LP --logical --physical", operands: textOperands, any: true},
	"which":    {flags: "-as --all", operands: textOperands, any: true},
	"whereis":  {flags: "-bmsulg", operands: textOperands},
	"type":     {flags: "-aftpP", operands: textOperands, any: true},
	"namei":    {flags: "-lmovnx --long --modes --owners --vertical --nosymlinks --mountpoints"},
	"pathchk":  {flags: "-pP --portability", operands: textOperands},
	"unzip":    {flags: "-lvZqqC1", max: 1, check: needs("unzip without -l writes files", "-l", "-v", "-Z")},
	"zipinfo":  {flags: "-12lmsvhMtTzZC", max: 1},
	"readelf":  {flags: "-aehlSsdrnVWIgtu -x: -p: --all --file-header --program-headers --sections --symbols --dynamic --wide", check: noResponseFile},
	"nm":       {flags: "-aACDgnoPruvS --demangle? --dynamic --extern-only --undefined-only --defined-only --size-sort", check: noResponseFile},
	"diffstat": {flags: "-bclkmqRuv -p: -n: -w:"},

	"touch":    {flags: "-acfhm -d: -r< -t: --date: --no-create --reference< --time: --no-dereference", writes: writesAll},
	"mkdir":    {flags: "-pv -m: --parents --verbose --mode:", writes: writesAll},
	"rmdir":    {flags: "-pv --parents --verbose --ignore-fail-on-non-empty", writes: writesAll},
	"rm":       {flags: "-dfiIrRv --force --recursive --dir --verbose --interactive? --one-file-system --preserve-root? --no-preserve-root", writes: writesAll},
	"tee":      {flags: "-aip --append --ignore-interrupts --output-error?", writes: writesAll},
	"truncate": {flags: "-co -s: -r< --size: --no-create --reference<", writes: writesAll},
	"mv":       {flags: "-finTuv --force --interactive --no-clobber --no-target-directory --update? --verbose", writes: writesAll},
	"cp": {flags: "-abdfHilLnpPrRsTuvx --archive --force --interactive --link --dereference --no-clobber --no-dereference --preserve? --recursive" +
		" --symbolic-link --no-target-directory --update? --verbose --reflink?", writes: writesLast},
	"ln": {flags: "-filnPrsTv --force --symbolic --relative --no-dereference --no-target-directory --verbose", writes: writesLast},
}

// needs makes a check that one of the flags was given.
func needs(why string, flags ...string) func(usage) string {
	return func(use usage) string {
		if use.has(flags...) {
			return ""
		}
		return why
	}
}
