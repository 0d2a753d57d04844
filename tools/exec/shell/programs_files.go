// Programs that show files, directories and paths, and the few that change
// files in ways plain enough to say which. To be checked against
// the manual pages of Debian 12 (coreutils 9.1, file 5.44, tree 2.1).

package shell

var filePrograms = map[string]*program{
	"ls": {
		names: "*",
		flags: "-aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --escape --block-size: --ignore-backups --color?" +
			" --directory --dired --classify? --file-type --format: --full-time --group-directories-first --no-group --human-readable --si" +
			" --dereference-command-line --dereference-command-line-symlink-to-dir --dereference --hide: --hyperlink? --indicator-style:" +
			" --inode --ignore: --kibibytes --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name" +
			" --quoting-style: --reverse --recursive --size --sort: --time: --time-style: --tabsize: --width: --context --zero --help --version",
		any: true, abbrev: true, here: "*",
	},
	"dir": {names: "*", flags: "-aAlhrRtS1d", any: true, here: "*"},
	"stat": {
		names: "*",
		flags: "-Lft -c: --dereference --file-system --cached: --format: --printf: --terse --help --version",
		any:   true, abbrev: true,
	},
	"file": {
		flags: "-bdEhikLlNnrS0 -F: -P: -e: --brief --mime --mime-type --mime-encoding --dereference --no-dereference --extension --keep-going" +
			" --no-pad --no-buffer --print0 --raw --separator: --exclude: --exclude-quiet: --list --version --help --apple",
		refused: each(map[string]string{
			"-f --files-from":    "names a file of files",
			"-m --magic-file":    "names a file of rules",
			"-C --compile":       writesFile,
			"-z -Z":              "runs decompressors",
			"-p --preserve-date": "sets times",
			"-s":                 "reads devices",
		}),
	},
	"du": {
		names:   "*",
		refused: namesList,
		flags: "-0abcDHhklLmPSsx -B: -d: -t: -X< --null --all --apparent-size --block-size: --bytes --total --dereference-args --max-depth:" +
			" --human-readable --inodes --dereference --count-links --no-dereference --separate-dirs --si --summarize" +
			" --threshold: --time? --time-style: --exclude-from< --exclude: --one-file-system --help --version",
		any: true, abbrev: true, here: "*",
	},
	"df": {
		names: "*",
		flags: "-ahHiklPTv -B: -t: -x: --all --block-size: --human-readable --si --inodes --local --no-sync --output? --portability" +
			" --print-type --total --type: --exclude-type: --help --version",
	},
	"tree": {
		names: "*", content: "--info --fromfile --gitfile",
		flags: "-aAcCdDfFgGhijJlnNpqQrsStuUvxX -H: -I: -L: -P: -T: --charset: --device --dirsfirst --filelimit: --filesfirst --fromfile --gitignore" +
			" --gitfile< --ignore-case --info --inodes --matchdirs --metafirst --noreport --prune --si --sort: --timefmt: --du --version --help",
		refused: each(map[string]string{"-o -R": writesFile}), here: "*", style: apart,
	},
	"basename": {names: "*", flags: "-az -s: --multiple --suffix: --zero --help --version", operands: textOperands, any: true},
	"dirname":  {names: "*", flags: "-z --zero --help --version", operands: textOperands, any: true},
	"realpath": {names: "*", flags: "-emLPqsz --canonicalize-existing --canonicalize-missing --logical --physical --quiet --relative-to: --relative-base:" +
		" --strip --no-symlinks --zero --help --version", any: true},
	"readlink": {names: "*", flags: "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent --verbose --zero" +
		" --help --version", any: true},
	"pwd":      {names: "*", flags: "-LP --logical --physical", operands: textOperands, any: true},
	"which":    {names: "*", flags: "-as --all", operands: textOperands, any: true},
	"whereis":  {names: "*", flags: "-bmsulg", operands: textOperands},
	"type":     {names: "*", flags: "-aftpP", operands: textOperands, any: true},
	"namei":    {names: "*", flags: "-lmovnx --long --modes --owners --vertical --nosymlinks --mountpoints"},
	"pathchk":  {names: "*", flags: "-pP --portability", operands: textOperands},
	"unzip":    {flags: "-lvpZqqC1", flagsFirst: true, check: needs("unzip without -l or -p writes files", "-l -v -p -Z")},
	"zipinfo":  {flags: "-12lmsvhMtTzZC", max: 1},
	"readelf":  {flags: "-aehlSsdrnVWIgtu -x: -p: --all --file-header --program-headers --sections --symbols --dynamic --wide", check: noResponseFile},
	"nm":       {flags: "-aACDgnoPruvS --demangle? --dynamic --extern-only --undefined-only --defined-only --size-sort", check: noResponseFile},
	"diffstat": {flags: "-bclkmqRuv -p: -n: -w:", operands: noOperands}, // of a file that is compressed it runs the decompressor
	"objdump":  {flags: "-afphxdDStTrRsgGCwlz -j: -M: -m: --file-headers --disassemble --disassemble-all --source --syms --dynamic-syms --demangle --all-headers --section-headers --section:", check: noResponseFile},
	"size":     {flags: "-ABGdoxt --format: --totals", check: noResponseFile},
	"gzip": {
		flags:      "-cdlktqvV0123456789 --stdout --to-stdout --decompress --list --test --keep --quiet --verbose --version",
		flagsFirst: true, check: needs("without -c, -l or -t it writes files", "-c --stdout --to-stdout -l --list -t --test -V --version"),
	},
	"xz": {
		flags:      "-cdlktqvV0123456789 --stdout --to-stdout --decompress --list --test --keep --quiet --verbose --version",
		flagsFirst: true, check: xzShows,
	},
	"xzcat": {flags: "-qv"}, "bzcat": {flags: "-qv"}, "zcat": {flags: "-fqv"}, // a script that starts gzip -cd
	"gofmt":      {flags: "-d -e -l -s", style: oneByOne},
	"dpkg":       {flags: "-l -L -s -S -p --list --listfiles --status --search --print-avail --get-selections --print-architecture --version", operands: textOperands, style: oneByOne, check: someFlag},
	"dpkg-query": {flags: "-l -L -s -S -p -W -f: --list --listfiles --status --search --print-avail --show --showformat: --version", operands: textOperands, check: someFlag},

	"touch":    {flags: "-acfhm -d: -r< -t: --date: --no-create --reference< --time: --no-dereference", writes: writesAll, spares: "-c --no-create"},
	"mkdir":    {flags: "-pv -m: --parents --verbose --mode:", writes: writesAll, how: Places},
	"rmdir":    {flags: "-pv --parents --verbose --ignore-fail-on-non-empty", writes: writesAll, how: Replaces},
	"rm":       {flags: "-dfiIrRv --force --recursive --dir --verbose --interactive? --one-file-system --preserve-root? --no-preserve-root", writes: writesAll, how: Replaces},
	"tee":      {flags: "-aip --append --ignore-interrupts --output-error?", writes: writesAll},
	"truncate": {flags: "-co -s: -r< --size: --no-create --reference<", writes: writesAll, spares: "-c --no-create"},
	"mv":       {flags: "-finTuv --force --interactive --no-clobber --no-target-directory --update? --verbose", writes: writesAll, how: Places},
	"cp": {
		flags: "-abdfHilLnpPrRsTuvx --archive --force --interactive --link --dereference --no-clobber --no-dereference --preserve? --recursive" +
			" --symbolic-link --no-target-directory --update? --verbose --reflink?", writes: writesLast,
		fresh: "-a -b -d -i -l -n -P -r -R -s -u --archive --interactive --link --no-clobber --no-dereference --recursive --symbolic-link --update",
	},
	"ln": {flags: "-filnPrsTv --force --symbolic --relative --no-dereference --no-target-directory --verbose", writes: writesLast, how: Places},
}

// xzShows: of -d, -l and -t the last one counts.
func xzShows(use usage) string {
	if use.has("-l --list -t --test") && !use.has("-d --decompress") {
		return ""
	}
	return needs("it writes files without -c, or without -l or -t where there is no -d", "-c --stdout --to-stdout -V --version")(use)
}

var someFlag = unless("without a flag it is not known what it does", func(use usage) bool { return len(use.flags) > 0 })
