// Where programs are installed, and which of them choose by files of the working directory what they run. It looks at the disk
// and starts nothing.

package pipeline

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/tools/fs/pathname"
	"github.com/toold/toold/tools/fs/repo"
)

// systemPlaces are where a system keeps programs that only its owner installs, and homePlaces where installers put them
// below the home directory.
var (
	systemPlaces = strings.Fields("/bin /sbin /lib /lib64 /usr /opt /snap /var/lib/snapd /nix /run/current-system /run/wrappers /etc/profiles" +
		" /etc/alternatives /home/linuxbrew/.linuxbrew /Library /System")
	homePlaces = strings.Fields("bin go .local .cargo .nvm .fnm .asdf .pyenv .rbenv .nodenv .goenv .bun .deno .sdkman .dotnet .nix-profile" +
		" .linuxbrew .npm-global .yarn .opam .ghcup .cabal .juliaup")
)

// installed reports whether the path lies where programs are installed, by the system or below home, and is not a shim.
func installed(path, home string) bool {
	inHome, err := filepath.Rel(home, path)
	return filepath.Base(filepath.Dir(path)) != "shims" &&
		(pathname.WithinAny(systemPlaces, path) || err == nil && pathname.WithinAny(homePlaces, inHome))
}

// A chooser runs a version of a program that a file names which it finds in the working directory or above.
type chooser struct {
	dir, program string // it lies in a directory of that name, or is that program
	files        string
}

// choosers are managers of versions, after their manuals. Absent: those of which a program of the table has a refusal of its
// own, such as corepack.
var choosers = []chooser{
	{dir: "shims", files: ".tool-versions .mise.toml mise.toml .mise.local.toml mise.local.toml .config/mise/config.toml .python-version .ruby-version" +
		" .node-version .nvmrc .go-version .java-version .php-version .perl-version .prototools .swift-version"},
	{dir: ".volta/bin", files: "package.json"},
	{dir: ".proto/bin", files: ".prototools"},
	{program: "rustup", files: "rust-toolchain rust-toolchain.toml"},
	{program: "mise", files: ".tool-versions .mise.toml mise.toml"},
	{program: "aqua-proxy", files: "aqua.yaml .aqua.yaml"},
}

// chooses returns the file by which the program at a path would choose what it runs, if calls can
// write it and it contains more than a version; empty: none.
func (s *search) chooses(path, real string) string {
	for _, m := range choosers {
		if m.program != "" && filepath.Base(real) != m.program || m.dir != "" && !strings.HasSuffix(filepath.Dir(path), "/"+m.dir) {
			continue
		}
		for dir := s.dir; ; dir = filepath.Dir(dir) {
			for name := range strings.FieldsSeq(m.files) {
				if file := filepath.Join(dir, name); s.changeable(file) && !versionsOnly(file) {
					return file
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return ""
}

// versionsOnly reports whether a file is not there, or holds names and numbers only: no path, and no address.
func versionsOnly(file string) bool {
	if _, err := os.Lstat(file); os.IsNotExist(err) {
		return true
	}
	data, err := repo.ReadSmall(file)
	text := string(data)
	return err == nil && !strings.ContainsAny(text, "/:\\(){}") && !strings.Contains(text, "..") && !strings.Contains(text, "path")
}
