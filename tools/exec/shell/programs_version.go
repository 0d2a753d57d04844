// Programs that do too much to be in the other tables, but print their version when
// that is all they are asked. Each was checked for what it does before it answers:
// what it loads, writes, fetches or starts then (gdb starts iconv, so it is absent).
// Others, and help, are in programs_alone.go.

package shell

import "strings"

var versionPrograms = each(map[string]*program{
	"node nodejs bun npm docker php ruby perl lua gcc g++ cc c++ clang clang++ make redis-server redis-cli nginx tsc eslint prettier": versionBy("-v"),
	"curl wget rsync ssh nano less deno python python2 python3 psql mysql shellcheck yq ruff uv":                                      versionBy("-V"),
	"vim emacs gh cmake ninja sqlite3 golangci-lint protoc buf tar javac ghc":                                                         versionBy(""), // ninja -v builds

	"tmux":           {flags: "-V", operands: noOperands, style: oneByOne, check: oneVersion, only: true},
	"java":           {flags: "--version", operands: noOperands, style: oneDash, check: oneVersion, only: true},
	"ffmpeg ffprobe": {flags: "--version", operands: noOperands, style: oneDash, check: oneDashOnly, only: true},
})

// unsafeVersions are the programs that one would look for above, and why they are
// not there: these are started by others that look around before they answer.
var unsafeVersions = each(map[string]string{
	"cargo rustc rustfmt rustup":      byToolchain,
	"yarn pnpm corepack":              byPackage,
	"mvn gradle dotnet poetry pytest": byProject,
})

const (
	byToolchain = "even to tell its version it may first fetch or run what a rust-toolchain file names"
	byPackage   = "even to tell its version it may first fetch or run what package.json or a settings file names"
	byProject   = "even to tell its version it may run or load what the project's settings name"
)

func asksVersion(w Word) bool {
	return w.in(" --version -version version -V -v ")
}

// versionBy is a program that is asked only for its version, by --version or by one
// short flag. The short ones differ between programs.
func versionBy(short string) *program {
	return &program{flags: "--version " + short, operands: noOperands, style: oneByOne, check: oneVersion, only: true}
}

// oneVersion is met by one flag and nothing else; the program's name is added to the reason
// elsewhere.
var oneVersion = unless("more is asked than its version", func(use usage) bool { return len(use.flags) == 1 && len(use.operands) == 0 })

// oneDashOnly: with two dashes it is another flag, or none.
func oneDashOnly(use usage) string {
	if strings.HasPrefix(use.first, "--") {
		use.flags = nil
	}
	return oneVersion(use)
}
