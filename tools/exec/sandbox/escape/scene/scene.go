// Package scene is what the escape suite tells its probe: where the things are that the probe must not reach. It does not
// know how they were made, nor what confines the probe.
package scene

import (
	"crypto/sha256"
	"encoding/hex"
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
	Shown                        string // a directory in the machine's /tmp, with one for each door of Temporary, of which "shown" may be read

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
	Guards  string `json:"guards,omitempty"`  // the protected path that it tries, which the suite must find as it was
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

// Groups of doors for which the suite prepares something.
const (
	Caches    = "caches"    // the directory outside of each is a cache of the user's
	Temporary = "temporary" // each has a directory in Shown
	Opened    = "opened"    // the directory "dir" in the directory outside of each may be written
)

// ShownSibling is the name of what lies beside.
const ShownSibling = "/sibling"
