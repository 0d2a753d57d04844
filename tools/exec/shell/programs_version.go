// Programs that do too much to be in the other tables, but print their version when
// that is all they are asked. Each was checked for what it does before it answers:
// what it loads, writes, fetches or starts then (gdb starts iconv, so it is absent).
// Others, and help, are in programs_alone.go.

package shell

import "strings"

var versionPrograms = map[string]*program{
	"docker": versionBy("-v"), "curl": versionBy("-V"), "wget": versionBy("-V"), "rsync": versionBy("-V"), "ssh": versionBy("-V"), "vim": versionBy(""),
	"emacs": versionBy(""), "nano": versionBy("-V"), "less": versionBy("-V"), "tmux": versionOnly("-V"), "gh": versionBy(""), "npm": versionBy("-v"),
	"node": versionBy("-v"), "nodejs": versionBy("-v"), "deno": versionBy("-V"), "bun": versionBy("-v"),
	"python": versionBy("-V"), "python2": versionBy("-V"), "python3": versionBy("-V"), "ruby": versionBy("-v"), "perl": versionBy("-v"),
	"php": versionBy("-v"), "lua": versionBy("-v"), "gcc": versionBy("-v"), "g++": versionBy("-v"), "cc": versionBy("-v"), "c++": versionBy("-v"),
	"clang": versionBy("-v"), "clang++": versionBy("-v"), "make": versionBy("-v"), "cmake": versionBy(""), "ninja": versionBy(""), // ninja -v builds
	"sqlite3": versionBy(""), "psql": versionBy("-V"), "mysql": versionBy("-V"), "redis-server": versionBy("-v"), "redis-cli": versionBy("-v"),
	"nginx": versionBy("-v"), "shellcheck": versionBy("-V"), "yq": versionBy("-V"), "ruff": versionBy("-V"), "uv": versionBy("-V"),
	"golangci-lint": versionBy(""), "protoc": versionBy(""), "buf": versionBy(""), "tsc": versionBy("-v"), "eslint": versionBy("-v"), "prettier": versionBy("-v"),
	"tar": versionBy(""), "java": {flags: "--version", operands: noOperands, style: oneDash, check: oneVersion, only: true}, "javac": versionBy(""),
	"ghc": versionBy(""), "ffmpeg": versionOnly("-version"), "ffprobe": versionOnly("-version"),
}

// unsafeVersions are the programs that one would look for above, and why they are
// not there: these are started by others that look around before they answer.
var unsafeVersions = map[string]string{
	"cargo": byToolchain, "rustc": byToolchain, "rustfmt": byToolchain, "rustup": byToolchain,
	"yarn": byPackage, "pnpm": byPackage, "corepack": byPackage,
	"mvn": byProject, "gradle": byProject, "dotnet": byProject, "poetry": byProject, "pytest": byProject,
}

const (
	byToolchain = "even to tell its version it may first fetch or run what a rust-toolchain file names"
	byPackage   = "even to tell its version it may first fetch or run what package.json or a settings file names"
	byProject   = "even to tell its version it may run or load what the project's settings name"
)

func asksVersion(w Word) bool {
	return w.Literal && listed(" --version -version version -V -v ", w.Text)
}

// versionBy is a program that is asked only for its version, by --version or by one
// short flag. The short ones differ between programs.
func versionBy(short string) *program {
	return &program{flags: "--version " + short, operands: noOperands, style: oneByOne, check: oneVersion, only: true}
}

// versionOnly is one that is asked by a single flag, which may be long with one dash.
func versionOnly(flag string) *program {
	if len(flag) > len("-v") {
		return &program{flags: "-" + flag, operands: noOperands, style: oneDash, check: oneDashOnly, only: true}
	}
	return &program{flags: flag, operands: noOperands, style: oneByOne, check: oneVersion, only: true}
}

// onlyVersion is the reason against further arguments; the program's name is added elsewhere.
const onlyVersion = "more is asked than its version"

func oneVersion(use usage) string {
	if len(use.flags) != 1 || len(use.operands) > 0 {
		return onlyVersion
	}
	return ""
}

// oneDashOnly: with two dashes it is another flag, or none.
func oneDashOnly(use usage) string {
	if strings.HasPrefix(use.first, "--") {
		return onlyVersion
	}
	return oneVersion(use)
}
