// The table of file types.

package selection

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Types are the globs of each type's names, in alphabetical order. Names and meaning are ripgrep's.
var Types = map[string]string{
	"asciidoc": "*.adoc *.asc *.asciidoc", "asm": "*.asm *.s *.S", "awk": "*.awk", "bazel": "*.bazel *.bazelrc *.bzl *.BUILD BUILD WORKSPACE",
	"c": "*.[chH] *.[chH].in *.cats", "clojure": "*.clj *.cljc *.cljs *.cljx", "cmake": "*.cmake CMakeLists.txt", "coffeescript": "*.coffee",
	"config": "*.cfg *.conf *.config *.ini", "cpp": "*.[ChH] *.cc *.hh *.inl *.[ch]pp *.[ch]xx *.[ChH].in *.cc.in *.hh.in *.[ch]pp.in *.[ch]xx.in",
	"crystal": "*.cr Projectfile", "cs": "*.cs", "csharp": "*.cs", "css": "*.css *.scss", "csv": "*.csv", "cython": "*.pyx *.pxi *.pxd",
	"d": "*.d", "dart": "*.dart", "diff": "*.patch *.diff", "docker": "*Dockerfile*", "elisp": "*.el", "elixir": "*.ex *.eex *.exs", "elm": "*.elm", "erb": "*.erb",
	"erlang": "*.erl *.hrl", "fish": "*.fish", "fortran": "*.f *.F *.f77 *.F77 *.pfo *.f90 *.F90 *.f95 *.F95", "fsharp": "*.fs *.fsx *.fsi",
	"go": "*.go", "gradle": "*.gradle", "groovy": "*.groovy *.gradle", "h": "*.h *.hh *.hpp", "haml": "*.haml",
	"haskell": "*.hs *.lhs *.cpphs *.c2hs *.hsc", "hbs": "*.hbs", "html": "*.htm *.html *.ejs", "java": "*.java *.jsp *.jspx *.properties",
	"js": "*.js *.jsx *.vue *.cjs *.mjs", "json": "*.json composer.lock", "jsonl": "*.jsonl", "julia": "*.jl", "jupyter": "*.ipynb *.jpynb", "kotlin": "*.kt *.kts",
	"less": "*.less", "license": "*LICENSE* *LICENCE* *COPYING* *COPYRIGHT* NOTICE* UNLICENSE*", "lisp": "*.el *.jl *.lisp *.lsp *.sc *.scm", "log": "*.log",
	"lua": "*.lua", "make": "[Mm]akefile [Gg][Nn][Uu]makefile [Mm]akefile.am [Mm]akefile.in *.mk *.mak", "man": "*.[0-9lnpx] *.[0-9][cEFMmpSx]",
	"markdown": "*.markdown *.md *.mdown *.mkdn *.mkd *.mdwn *.mdx", "matlab": "*.m", "md": "*.markdown *.md *.mdown *.mkdn *.mkd *.mdwn *.mdx",
	"meson": "meson.build meson_options.txt", "mk": "mkfile", "ml": "*.ml", "nim": "*.nim *.nimf *.nimble *.nims", "nix": "*.nix",
	"objc": "*.h *.m", "objcpp": "*.h *.mm", "ocaml": "*.ml *.mli *.mll *.mly", "org": "*.org *.org_archive", "pascal": "*.pas *.dpr *.lpr *.pp *.inc",
	"perl": "*.perl *.pl *.PL *.plh *.plx *.pm *.t", "php": "*.php *.php3 *.php4 *.php5 *.phtml", "pod": "*.pod", "protobuf": "*.proto",
	"ps": "*.cdxml *.ps1 *.ps1xml *.psd1 *.psm1", "puppet": "*.erb *.pp *.rb", "purs": "*.purs", "py": "*.py", "qml": "*.qml",
	"r": "*.R *.r *.Rmd *.Rnw", "racket": "*.rkt", "readme": "README* *README", "rst": "*.rst", "ruby": "*.rb *.gemspec .irbrc Gemfile Rakefile config.ru",
	"rust": "*.rs", "sass": "*.sass *.scss", "scala": "*.scala *.sbt", "sh": "*.sh *.bash *.bashrc *.csh *.cshrc *.ksh *.kshrc *.tcsh *.zsh " +
		".bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login .logout .profile .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc bash_login bash_logout bash_profile bashrc profile",
	"sml": "*.sml *.sig", "sql": "*.sql *.psql", "stylus": "*.styl", "sv": "*.v *.vg *.sv *.svh *.h", "svg": "*.svg", "swift": "*.swift",
	"systemd": "*.automount *.conf *.device *.link *.mount *.path *.scope *.service *.slice *.socket *.swap *.target *.timer", "tcl": "*.tcl",
	"tex": "*.tex *.ltx *.cls *.sty *.bib *.dtx *.ins", "tf": "*.tf", "thrift": "*.thrift", "toml": "*.toml Cargo.lock", "ts": "*.ts *.tsx *.cts *.mts",
	"twig": "*.twig", "txt": "*.txt", "typoscript": "*.typoscript *.ts", "vala": "*.vala", "vb": "*.vb", "verilog": "*.v *.vh *.sv *.svh",
	"vhdl": "*.vhd *.vhdl", "vim": "*.vim", "vimscript": "*.vim", "webidl": "*.idl *.webidl *.widl", "wiki": "*.mediawiki *.wiki",
	"xml": "*.xml *.xml.dist *.dtd *.xsl *.xslt *.xsd *.xjb *.rng *.sch *.xhtml", "yacc": "*.y", "yaml": "*.yaml *.yml", "zig": "*.zig", "zsh": "*.zsh .zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc",
}

// aliases are names that models use and that ripgrep, or an older version, does not have.
var aliases = map[string]string{"cuda": "*.cu *.cuh", "graphql": "*.graphql *.graphqls", "python": "*.py", "solidity": "*.sol", "tsx": "*.tsx", "jsx": "*.jsx", "javascript": "*.js *.jsx *.vue *.cjs *.mjs", "typescript": "*.ts *.tsx *.cts *.mts", "vue": "*.vue", "svelte": "*.svelte", "golang": "*.go", "bash": "*.sh *.bash", "shell": "*.sh *.bash *.zsh *.ksh"}

// Type returns the globs of a type's names in one version of ripgrep.
func Type(name string) ([]string, bool) {
	globs, ok := Types[name]
	if !ok {
		globs, ok = aliases[name]
	}
	return strings.Fields(globs), ok
}

// Near returns the types that begin like name, or that files ending in ".name" have.
func Near(name string) []string {
	var near []string
	for known, globs := range Types {
		if strings.HasPrefix(known, name[:min(2, len(name))]) || slices.Contains(strings.Fields(globs), "*."+name) {
			near = append(near, known)
		}
	}
	slices.Sort(near)
	return near
}

// versions are the types whose globs are known for all of ripgrep's versions 13 to 15: those above,
// and these.
var versions = map[string]string{
	"c": "", "cpp": "*.[ChH]* *.[ch]pp* *.[ch]xx* *.cc* *.hh* *.inl", "css": "", "go": "", "html": "", "java": "", "js": "", "json": "*.sarif", "md": "",
	"py": "*.pyi", "rust": "", "sql": "", "swift": "", "toml": "", "ts": "", "yaml": "",
}

// everyVersion returns the globs of a type's names in any version of ripgrep; false if they are
// unknown.
func everyVersion(name string) ([]string, bool) {
	more, ok := versions[name]
	return strings.Fields(Types[name] + " " + more), ok
}

// textual are the extensions of files that are usually text.
var textual = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for _, globs := range append(slices.Collect(maps.Values(Types)), slices.Collect(maps.Values(aliases))...) {
		for glob := range strings.FieldsSeq(globs) {
			if ending, ok := strings.CutPrefix(glob, "*."); ok && !strings.ContainsAny(ending, "*?[") {
				known["."+ending] = true
			}
		}
	}
	for _, c := range []string{".c", ".h", ".cpp", ".hpp", ".cxx", ".hxx"} {
		known[c] = true
	}
	return known
})

// Textual reports whether a file of that name is treated as text until it is read.
func Textual(name string) bool { return textual()[path.Ext(name)] }
