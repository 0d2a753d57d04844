// Where programs keep caches. A session's processes see the user's own there, and write to folders
// that belong to the session's roots.

package daemon

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/scheduler/pipeline"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fs/pathname"
)

// A cacheKind is a cache as a program's manual describes it. None of these folders is for
// credentials: those lie beside them.
type cacheKind struct {
	name     string
	variable string // that names the folder
	moves    bool   // by the variable, where the folder itself cannot be written
	base     string // a variable that names the folder in which it is
	home     string // the folder, or that in which it is, below home if the variable is not set; empty: there is none then
	below    string // the folder, in the base
	maker    string // a program that makes the folder if it is not there, and does not work without it
}

var cacheKinds = []cacheKind{
	// The freedesktop base directory specification. Go, pip, golangci-lint, ccache, uv, yarn, pnpm
	// and others keep theirs there.
	{name: "xdg", variable: "XDG_CACHE_HOME", moves: true, home: ".cache", maker: "sh"},
	{name: "go-build", variable: "GOCACHE", moves: true},                                  // go help environment
	{name: "go-mod", variable: "GOMODCACHE"},                                              // go help environment
	{name: "go-pkg", base: "GOPATH", home: "go", below: "pkg"},                            // go help gopath: modules and their checksums
	{name: "npm", variable: "npm_config_cache", moves: true, home: ".npm", maker: "npm"},  // npm help config
	{name: "pip", variable: "PIP_CACHE_DIR", moves: true},                                 // pip help cache
	{name: "ccache", variable: "CCACHE_DIR", moves: true, home: ".ccache"},                // ccache(1)
	{name: "golangci-lint", variable: "GOLANGCI_LINT_CACHE", moves: true},                 // golangci-lint cache --help
	{name: "cargo-registry", base: "CARGO_HOME", home: ".cargo", below: "registry"},       // The Cargo Book, "Cargo Home"
	{name: "cargo-git", base: "CARGO_HOME", home: ".cargo", below: "git"},                 // the same
	{name: "maven", home: ".m2", below: "repository"},                                     // Maven's Settings Reference, localRepository
	{name: "gradle", base: "GRADLE_USER_HOME", home: ".gradle", below: "caches"},          // Gradle User Manual, "Directories and Files"
	{name: "gradle-wrapper", base: "GRADLE_USER_HOME", home: ".gradle", below: "wrapper"}, // the same
	{name: "nuget", variable: "NUGET_PACKAGES", home: ".nuget/packages"},                  // NuGet, "Managing global packages and cache folders"
	{name: "yarn", variable: "YARN_GLOBAL_FOLDER", home: ".yarn/berry"},                   // Yarn, globalFolder
	{name: "bun", variable: "BUN_INSTALL_CACHE_DIR", home: ".bun/install/cache"},          // Bun, "Global cache"
	{name: "pnpm", base: "PNPM_HOME", home: ".local/share/pnpm", below: "store"},          // pnpm, storeDir
	{name: "deno", variable: "DENO_DIR"},                                                  // deno help
	{name: "sccache", variable: "SCCACHE_DIR"},                                            // sccache's README
	{name: "uv", variable: "UV_CACHE_DIR"},                                                // uv help cache
}

// path returns where the cache of a user is whose home this is, as variables say; empty: there is
// none.
func (k cacheKind) path(home string, variable func(name string) string) string {
	if dir := variable(k.variable); dir != "" {
		return dir
	}
	dir, _, _ := strings.Cut(variable(k.base), ":") // GOPATH is a list
	if dir == "" {
		if k.home == "" || home == "" {
			return ""
		}
		dir = filepath.Join(home, k.home)
	}
	return filepath.Join(dir, k.below)
}

// cacheVariables are those of a client's environment that say where caches are.
func cacheVariables(env map[string]string) map[string]string {
	found := make(map[string]string)
	for _, k := range cacheKinds {
		for _, name := range []string{k.variable, k.base} {
			if env[name] != "" {
				found[name] = env[name]
			}
		}
	}
	return found
}

// belowHome are those of a client's variables that count: they lead below the home directory of the
// daemon's user, and not to all of it. So a client cannot have other places laid over.
func (d *Daemon) belowHome(client map[string]string) map[string]string {
	found := make(map[string]string)
	for name, value := range client {
		first, _, _ := strings.Cut(value, ":")
		home, path := realPath(d.user.home), realPath(first)
		if d.user.home != "" && filepath.IsAbs(first) && path != home && pathname.Within(home, path) {
			found[name] = value
		}
	}
	return found
}

// caches are those of the user that calls in these roots can use. What the client's variables name
// goes before the daemon's own.
func (d *Daemon) caches(owner access.Principal, roots []string, client map[string]string) (all []pipeline.Cache) {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(owner)}, roots...), "\x00")))
	own := filepath.Join(d.cacheDir(), hex.EncodeToString(sum[:8]))
	client = d.belowHome(client)
	defer func() { _ = os.Chtimes(own, time.Time{}, time.Now()) }() // sweepCaches goes by it
	for _, k := range cacheKinds {
		usual := k.path(d.user.home, os.Getenv)
		path := k.path(d.user.home, func(name string) string { return cmp.Or(client[name], os.Getenv(name)) })
		name := k.name
		if path != usual { // no two places share what is written
			place := sha256.Sum256([]byte(path))
			name, k.maker = name+"-"+hex.EncodeToString(place[:4]), ""
		}
		if !filepath.IsAbs(path) || !k.there(path) {
			continue
		}
		c := pipeline.Cache{Place: sandbox.Place{Path: realPath(path), Access: sandbox.Write, Above: filepath.Join(own, name)}}
		if k.moves {
			c.Variable = k.variable
		}
		inside := func(dir string) bool { return pathname.Within(dir, c.Path) }
		around := func(dir string) bool { return pathname.Within(c.Path, dir) }
		known := func(o pipeline.Cache) bool { return inside(o.Path) }
		if around(d.user.home) || slices.ContainsFunc(sandbox.SystemTrees, inside) || slices.ContainsFunc(roots, inside) || slices.ContainsFunc(all, known) {
			continue
		}
		if err := makeLayers(c.Place); err != nil {
			d.Log.Warn("there is no cache for processes", zap.String("path", c.Path), zap.Error(err))
			continue
		}
		all = append(all, c)
	}
	return all
}

// cacheDir is where the folders of what processes write to caches are, one for each list of roots
// of a user.
func (d *Daemon) cacheDir() string { return filepath.Join(realPath(d.StateDir), "caches") }

// sweepCaches removes the folders of caches that no session has used for longer than the settings
// keep them.
func (d *Daemon) sweepCaches(now time.Time) error {
	entries, err := os.ReadDir(d.cacheDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before := now.Add(-24 * time.Hour * time.Duration(d.limits.CacheDays))
	var wrong []error
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.ModTime().After(before) {
			continue
		}
		if path := filepath.Join(d.cacheDir(), entry.Name()); d.usesCaches(path) {
			wrong = append(wrong, os.Chtimes(path, time.Time{}, now))
		} else {
			wrong = append(wrong, removeTree(path))
		}
	}
	return errors.Join(wrong...)
}

// usesCaches reports whether a session has its caches in the folder.
func (d *Daemon) usesCaches(folder string) bool {
	return slices.ContainsFunc(d.sessions.all(), func(s *session) bool {
		return slices.ContainsFunc(s.judge.policy().confining.Caches, func(c pipeline.Cache) bool { return filepath.Dir(c.Above) == folder })
	})
}

// there reports whether the folder is there. One that a program makes at its first use is made.
func (k cacheKind) there(path string) bool {
	if there := pathname.IsDir(path); there || k.maker == "" {
		return there
	}
	if _, err := exec.LookPath(k.maker); err == nil {
		_ = os.MkdirAll(path, 0o755) //nolint:gosec // as programs do
	}
	return pathname.IsDir(path)
}

// makeLayers makes the folders above a cache, which are to look like it.
func makeLayers(p sandbox.Place) error {
	info, err := os.Stat(p.Path)
	for _, name := range sandbox.LayerFolders() {
		err = cmp.Or(err, os.MkdirAll(filepath.Join(p.Above, name), 0o700))
	}
	if err != nil {
		return err
	}
	return os.Chmod(p.Upper(), info.Mode().Perm())
}
