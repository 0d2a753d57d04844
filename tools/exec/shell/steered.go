// By which environment variables the programs of the table load, run or write
// something that their words do not name. Pure data and lookups.
//
// PATH is absent: which file a word leads to by it is not judged here.

package shell

import (
	"maps"
	"slices"
	"strings"
)

// everyProgram are the names that the loader, the C library and bash obey on
// behalf of any program. A final * stands for any ending. Sources: ld.so(8),
// environ(7), resolver(5), bash(1) 5.2.
var everyProgram = strings.Fields("LD_* GCONV_PATH LOCPATH NLSPATH TZDIR GLIBC_TUNABLES MALLOC_*" +
	" GETCONF_DIR HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_HOST_CONF" +
	" BASH_ENV ENV BASHOPTS SHELLOPTS BASH_FUNC_* BASH_COMPAT BASH_XTRACEFD CDPATH" +
	" EXECIGNORE GLOBIGNORE IFS POSIXLY_CORRECT PROMPT_COMMAND PS4")

// locales are the names whose value is the name of a file in the system's own
// tables, or of any file if it has a slash in it.
var locales = strings.Fields("LANG LANGUAGE LC_* TZ")

// ownSettings are the names that lead to a user's own configuration. They are
// what a program of [versionPrograms] obeys that is not in steeredBy.
const (
	ownSettings  = "HOME XDG_CONFIG_HOME"
	steersNode   = ownSettings + " NODE_*"
	steersPython = ownSettings + " PYTHON*"
)

// steeredBy are the names that a program obeys, by the program's name; a final
// * stands for any ending. To be checked against each one's manual.
var steeredBy = split(map[string]string{
	"git": ownSettings + " GIT_ALLOW_PROTOCOL GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_ATTR_SOURCE" +
		" GIT_CEILING_DIRECTORIES GIT_COMMON_DIR GIT_CONFIG* GIT_DIR GIT_DISCOVERY_ACROSS_FILESYSTEM" +
		" GIT_EXEC_PATH GIT_EXTERNAL_DIFF GIT_GRAFT_FILE GIT_INDEX_FILE GIT_INTERNAL_* GIT_NAMESPACE GIT_OBJECT_DIRECTORY" +
		" GIT_PROXY_COMMAND GIT_QUARANTINE_PATH GIT_REPLACE_REF_BASE GIT_SHALLOW_FILE GIT_SSH* GIT_TEST_* GIT_TRACE* GIT_WORK_TREE",

	"python python2 python3":          steersPython,
	"lsb_release":                     steersPython + " LSB_*",
	"pip pip3":                        steersPython + " PIP_*",
	"uv":                              steersPython + " UV_*",
	"node nodejs tsc eslint prettier": steersNode,
	"npm":                             steersNode + " NPM_* npm_* PREFIX",
	"deno":                            ownSettings + " DENO_*",
	"bun":                             ownSettings + " BUN_*",
	"go gofmt golangci-lint":          ownSettings + " GO* CGO_* CC CXX AR FC PKG_CONFIG*",
	"java javac":                      ownSettings + " CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS JDK_JAVAC_OPTIONS _JAVA_OPTIONS",
	"cargo rustc rustfmt rustup":      ownSettings + " CARGO* RUST*",
	"ruby":                            ownSettings + " RUBY* GEM_*",
	"perl":                            ownSettings + " PERL*",
	"shasum":                          "PERL*",
	"php":                             ownSettings + " PHPRC PHP_INI_SCAN_DIR",
	"lua":                             ownSettings + " LUA_*",
	"gcc g++ cc c++ clang clang++":    ownSettings + " COMPILER_PATH GCC_EXEC_PREFIX CCC_OVERRIDE_OPTIONS",
	"make":                            ownSettings + " GNUMAKEFLAGS MAKEFILES MAKEFLAGS",
	"ghc":                             ownSettings + " GHC*",
	"shellcheck":                      ownSettings + " SHELLCHECK_OPTS",

	"awk gawk nawk":                   "AWKPATH AWKLIBPATH",
	"mawk":                            "MAWKBINMODE",
	"grep egrep fgrep":                "GREP_OPTIONS",
	"rg":                              ownSettings + " RIPGREP_CONFIG_PATH",
	"fd fdfind":                       ownSettings,
	"jq":                              "HOME",
	"file":                            "HOME MAGIC",
	"tar":                             ownSettings + " TAPE TAR_OPTIONS",
	"bc":                              "BC_ENV_ARGS",
	"gzip zcat":                       "GZIP",
	"bzcat":                           "BZIP BZIP2",
	"xz xzcat":                        "XZ_DEFAULTS XZ_OPT",
	"unzip zipinfo":                   "UNZIP UNZIPOPT ZIPINFO ZIPINFOOPT",
	"nm objdump readelf size strings": "DEBUGINFOD_*",
	"dpkg dpkg-query":                 "HOME DPKG_*",
	"lsof":                            "HOME LSOF*",
	"tput":                            "HOME TERMINFO TERMINFO_DIRS TERMCAP",
	"openssl":                         ownSettings + " OPENSSL_*",
	"ss":                              "PROC_* TCPDIAG_FILE",
	"ip":                              "PROC_*",
	"lsblk findmnt mount":             "LIBMOUNT_* BLKID_*",

	"curl":   ownSettings + " CURL_HOME",
	"wget":   ownSettings + " WGETRC",
	"docker": ownSettings + " DOCKER_*",
	"gh":     ownSettings + " GH_*",
	"less":   ownSettings + " LESS* XDG_DATA_HOME",
	"vim":    ownSettings + " VIM*",
	"emacs":  ownSettings + " EMACS*",
	"psql":   ownSettings + " PG* PSQLRC",
	"mysql":  ownSettings + " MYSQL_*",
	"rsync":  ownSettings + " RSYNC_*",
})

// plainManuals are the programs and builtins whose manuals name no variable by which
// they load, run or write something, beside those that count for every program:
// only locale, terminal, sizes, colours and columns.
const plainManuals = " arch b2sum base32 base64 basename cal cat cksum cmp column comm cut date df diff diffstat dir dirname dmesg du" +
	" expand expr factor fmt fold free getconf getent groups hd head help hexdump history hostname iconv id ifconfig iostat join locale" +
	" logname ls lscpu lsmod lsusb md5sum namei ncal netstat nl nproc numfmt od paste pathchk pgrep pidof pr printenv ps" +
	" pstree pwd readlink realpath rev seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep sort stat sum" +
	" sysctl tac tail tee tr tree tsort tty type uname unexpand uniq uptime users vmstat w wc whereis which who whoami xxd yes" +
	" find sed gsed xargs timeout nice stdbuf nohup bash sh dash " + builtins

// anyProgram are the names that some program obeys. A program that has no list of its own
// may obey any of them.
var anyProgram = append(union(steeredBy), "EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "SHELL")

func split(lists map[string]string) map[string][]string {
	names := make(map[string][]string, len(lists)+len(versionPrograms))
	for program := range versionPrograms {
		names[program] = strings.Fields(ownSettings)
	}
	for program := range strings.FieldsSeq(plainManuals) {
		names[program] = nil
	}
	for program, list := range each(lists) {
		names[program] = strings.Fields(list)
	}
	return names
}

func union(lists map[string][]string) (names []string) {
	for _, program := range slices.Sorted(maps.Keys(lists)) {
		for _, name := range lists[program] {
			names = addTo(names, name)
		}
	}
	return names
}

// Steered returns the commands of the script that count as read-only and do
// not once variables have these values, by their index in a.Commands, each
// with the name of one variable. set are those that differ from the
// environment that the daemon itself runs with. A command that rules see
// through its wrapper only stands under the index of that wrapper.
func (a Analysis) Steered(set map[string]string) map[int]string {
	found, by := map[int]string{}, map[string]string{}
	names := slices.Sorted(maps.Keys(set))
	for i, c := range a.Commands {
		if !c.ReadOnly {
			continue
		}
		name, asked := by[c.Name]
		if !asked {
			if at := slices.IndexFunc(names, func(n string) bool { return obeys(c.Name, n, set[n]) }); at >= 0 {
				name = names[at]
			}
			by[c.Name] = name
		}
		if at := Outermost(a.Commands, i); name != "" && a.Commands[at].ReadOnly {
			found[at] = name
		}
	}
	return found
}

// Outermost returns the index under which a command stands for rules: its own, or that
// of the wrapper that they do not see through.
func Outermost(commands []Command, i int) int {
	for i > 0 && commands[i].DenyOnly {
		i--
	}
	return i
}

// obeys reports whether a variable with that value can make a program load, run
// or write something else than its words name.
func obeys(program, name, value string) bool {
	switch {
	case fits(locales, name):
		return !plainValue(name, value)
	case listed(harmlessNames, name) && plainValue(name, value):
		return false
	}
	program = base(program)
	own, known := steeredBy[program]
	if !known && program != "" {
		return fits(everyProgram, name) || fits(anyProgram, name) || strings.HasPrefix(name, strings.ToUpper(capitals.Replace(program)))
	}
	return fits(everyProgram, name) || fits(own, name)
}

// capitals makes of a program's name, in capitals, what the names of variables begin with that are
// its own.
var capitals = strings.NewReplacer("-", "_", ".", "_", "+", "X")

// fits reports whether a name is in a list of names, of which some end in *.
func fits(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		start, open := strings.CutSuffix(p, "*")
		return open && strings.HasPrefix(name, start) || p == name
	})
}
