// Package scene is what the escape suite tells its probe: where the things are that the probe must not reach. It does not
// know how they were made, nor what confines the probe.
package scene

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Scene is everything that the doors are tried on. It holds no secret: a probe that shows one has read it elsewhere.
type Scene struct {
	Outside string // a directory that must stay as it is; below it one directory for each door, named by Slug
	Root    string // a root, with a .git in it; below it one directory for each door
	Bare    string // a root without .git
	Own     string // this door's directory in Root; set by the probe
	Out     string // this door's directory in Outside; set by the probe
	UID     int    // who the probe is meant to run as
	Nonce   string // part of every name outside the file system, so that two runs do not meet

	HiddenInside  string // a file below Root whose content must stay hidden
	HiddenOutside string // a file below Outside likewise
	HiddenPlanted string // a second name of HiddenOutside, in Root
	Credential    string // a private key in a home directory
	Token         string // the daemon's token file
	State         string // a file in the daemon's state directory
	Sockets       string // the daemon's socket directory
	Kept          string // a file that another session has written to a cache, in the state directory
	Lent          string // an output of another session, in the state directory
	Outputs       string // the outputs of the session itself, in the state directory, which may be read
	SecretSum     string // SHA-256 of what all of them hold, in hexadecimal
	SecretName    string // the environment variable of the starter that holds it too

	Victim  Process // a process outside, of the same user
	Starter Process // who starts the probe
	Signals map[string]int

	// Beside and Left are directories in Root, each of a process that runs beside the probe: one of another session, and one that
	// an earlier call of this session has left running, which may write in Outside. In Left is the number of the process.
	Beside, Left                 string
	BesideAbstract, LeftAbstract string // the names on which they listen
	System                       string // a Unix socket below /run; "" if not made
	Shown                        string // a directory in the machine's /tmp, with one for each of ShownDoors, of which "shown" may be read

	TCP, UDP                     string // addresses on the host's loopback
	Stream, Datagram             string // pathname Unix sockets
	StreamPlanted                string // a second name of Stream, in Root
	Abstract, AbstractDatagram   string // abstract Unix sockets, without the @
	Bound                        string // an abstract name that Victim tries to connect to, until the end
	Setuid, Capable              string // copies of the probe: setuid to another user, and with file capabilities; "" if not made
	Device                       string // a device in Outside; "" if not made
	PipeIn, PipeOut              string // named pipes of others: one that a process reads, and one that holds the secret
	Terminal                     string // another process's pseudo terminal
	Shared, Semaphores, Messages int    // keys of System V objects; Shared exists and holds the secret
	Bounds                       Bounds
}

// A Process is one outside.
type Process struct {
	PID        int
	EnvironSum string  // SHA-256 of /proc/PID/environ
	Address    uintptr // where its memory holds the secret
	Directory  int     // its descriptor of Outside
	Secret     int     // its descriptor of a file without a name that holds the secret
}

// Bounds are where the bombs stop by themselves: a bomb that gets there has found no limit.
type Bounds struct {
	Processes, Files         int
	Memory, FileSize, Filled int64 // bytes
}

// A Result is one line of what the probe prints.
type Result struct {
	Door    string `json:"door"`
	Group   string `json:"group"`
	Open    bool   `json:"open"`
	Detail  string `json:"detail"`
	Outside bool   `json:"outside,omitempty"` // its effect is to be seen from outside, and only that counts
}

// Slug is the name of a door's directories and of what it sends.
func Slug(door string) string {
	return strings.Trim(other.ReplaceAllString(strings.ToLower(door), "-"), "-")
}

var (
	other  = regexp.MustCompile(`[^a-z0-9]+`)
	secret = regexp.MustCompile(`toold-secret-[0-9a-f]{32}`)
)

// Sum is how the scene names what must not be told.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Told reports that b holds the scene's secret.
func (s *Scene) Told(b []byte) bool {
	return slices.ContainsFunc(secret.FindAll(b, -1), func(found []byte) bool { return Sum(found) == s.SecretSum })
}

// Parse returns the scene for one door, or for all if door is "".
func Parse(b []byte, door string) (*Scene, error) {
	s := new(Scene)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	if door != "" {
		s.Own, s.Out = filepath.Join(s.Root, Slug(door)), filepath.Join(s.Outside, Slug(door))
	}
	return s, nil
}

// Roots are where the probe may write.
func (s *Scene) Roots() []string { return []string{s.Root, s.Bare} }

// Hidden are the files and directories whose content must not be read.
func (s *Scene) Hidden() []string {
	return []string{
		s.HiddenInside, s.HiddenOutside, filepath.Dir(s.Credential), s.Token, filepath.Dir(s.State), s.Sockets,
	}
}

// Protected are the paths below the roots, apart from those in git directories, that must not change, or come into being.
func (s *Scene) Protected() []string {
	var all []string
	for _, name := range []string{".gitmodules", ".mcp.json", ".claude", ".toold", ".vscode", ".idea", ".envrc"} {
		all = append(all, filepath.Join(s.Root, name))
	}
	return append(all, filepath.Join(s.Bare, ".git"), filepath.Join(s.Bare, ".mcp.json"))
}

// Git are files of git's in Root besides .git itself, by their names there: a linked worktree, a submodule whose name has a slash with
// another one in it, and a bare repository. A name that ends in / is a directory.
var Git = map[string]string{
	".git/objects/": "", ".git/refs/": "",
	".git/worktrees/w/HEAD": "ref: refs/heads/w\n", ".git/worktrees/w/commondir": "../..\n", ".git/worktrees/w/gitdir": "ROOT/linked/.git\n",
	"linked/.git":                                         "gitdir: ROOT/.git/worktrees/w\n",
	"third_party/foo/.git":                                "gitdir: ../../.git/modules/third_party/foo\n",
	".git/modules/third_party/foo/HEAD":                   "ref: refs/heads/main\n",
	".git/modules/third_party/foo/config":                 "[core]\n\tworktree = ../../../../third_party/foo\n",
	".git/modules/third_party/foo/objects/":               "",
	".git/modules/third_party/foo/refs/":                  "",
	".git/modules/third_party/foo/hooks/x":                "#!/bin/sh\n",
	"third_party/foo/inner/.git":                          "gitdir: ../../../.git/modules/third_party/foo/modules/inner\n",
	".git/modules/third_party/foo/modules/inner/HEAD":     "ref: refs/heads/main\n",
	".git/modules/third_party/foo/modules/inner/config":   "[core]\n\tworktree = ../../../../../../third_party/foo/inner\n",
	".git/modules/third_party/foo/modules/inner/objects/": "",
	".git/modules/third_party/foo/modules/inner/refs/":    "",
	".githooks/pre-push":                                  "#!/bin/sh\n",
	"deep/er/bare.git/HEAD":                               "ref: refs/heads/main\n",
	"deep/er/bare.git/config":                             "[core]\n\tbare = true\n",
	"deep/er/bare.git/objects/":                           "",
	"deep/er/bare.git/refs/":                              "",
}

// Caches are the doors whose directory outside is a cache of the user's: in a sandbox that has such, it shows what is there, and
// gets nothing of what is written.
var Caches = []string{
	"write to a file of a cache", "create a file in a cache", "remove a file of a cache", "rename a file of a cache", "chmod a file of a cache",
	"write to a file of a cache by another name for a descriptor", "write by a link from a cache to the root",
	"give a file of a cache an attribute of overlays", "write to a file of a cache through /proc/self/root",
	"write to a file of a cache through its directory's descriptor", "write to a file of a cache by a hard link planted in the root",
}

// ShownDoors are the doors beside a file of the machine's temporary directory.
var ShownDoors = []string{
	"write to a file of the machine's /tmp that is shown", "truncate a file of the machine's /tmp that is shown",
	"remove a file of the machine's /tmp that is shown", "rename over a file of the machine's /tmp that is shown",
	"rename a file of the machine's /tmp that is shown", "make a file beside one of the machine's /tmp that is shown",
	"write to a file beside one of the machine's /tmp that is shown", "write by .. beside one of the machine's /tmp that is shown",
}

// ShownSibling is the name of what lies beside.
const ShownSibling = "/sibling"

// OpenedDoors are the doors in whose directory outside the directory "dir" may be written.
var OpenedDoors = []string{
	"make a file beside a directory that was opened", "write to a file beside one that was opened", "rename a directory that was opened",
	"move a file into a directory that was opened", "link a file into a directory that was opened",
	"write by .. of a directory that was opened", "write by a descriptor of a directory and its ..",
}

// Guarded names, for each door to a protected path whose effect stays, which path the suite must find as it was: relative to
// Root, or to Bare if it begins with "bare:".
var Guarded = map[string]string{
	"append to .git/config":                                 ".git/config",
	"create .git/hooks/pre-commit":                          ".git/hooks/pre-commit",
	"create .git/hooks/commit-msg through a symlink":        ".git/hooks/commit-msg",
	"link .git/hooks/post-commit":                           ".git/hooks/post-commit",
	"rename into .git/hooks/post-merge":                     ".git/hooks/post-merge",
	"chmod a hook that exists":                              ".git/hooks/pre-push",
	"unlink .gitmodules":                                    ".gitmodules",
	"create .mcp.json":                                      ".mcp.json",
	"rename a prepared directory to .claude":                ".claude",
	"mkdir .vscode with settings.json":                      ".vscode",
	"symlink .envrc":                                        ".envrc",
	"mkdir .toold with settings.json":                       ".toold",
	"exchange a prepared directory with .idea":              ".idea",
	"create .git with a hook where there is none":           "bare:.git",
	"link a prepared file to .mcp.json where there is none": "bare:.mcp.json",

	"create .git/commondir":                                      ".git/commondir",
	"rename onto the .git file of a linked worktree":             "linked/.git",
	"rename onto the commondir of another worktree":              ".git/worktrees/w/commondir",
	"rename onto the .git file of a submodule":                   "third_party/foo/.git",
	"append to the configuration of a submodule":                 ".git/modules/third_party/foo/config",
	"create a hook of a submodule":                               ".git/modules/third_party/foo/hooks/pre-commit",
	"append to the configuration of a submodule of a submodule":  ".git/modules/third_party/foo/modules/inner/config",
	"create the first hook of a submodule of a submodule":        ".git/modules/third_party/foo/modules/inner/hooks",
	"create a hook below core.hooksPath":                         ".githooks/pre-commit",
	"append a program to the configuration of a bare repository": "deep/er/bare.git/config",
	"make a bare repository whose configuration runs a program":  "trap/config",
	"make a .git file that leads to another repository":          "sub/.git",
	"make a module whose configuration runs a program":           ".git/modules/trap/config",
}
