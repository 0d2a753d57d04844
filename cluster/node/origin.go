// What a new workspace begins with: the files of a Git repository, or of a snapshot that an administrator has named.

package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/toold/toold/cluster/container"
	"github.com/toold/toold/cluster/identity"
	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/snapshot"
	"github.com/toold/toold/daemon/apierror"
)

// cloneTime is how long a repository may take to be cloned.
const cloneTime = 10 * time.Minute

// clone is a shell's script: the repository is $1, found at $2, the ref $3. Who owns the repository does not matter, since it is
// only read.
const clone = `set -e
git -c safe.directory='*' clone --quiet --no-hardlinks -- "$2" .
git remote set-url origin "$1"
[ -z "$3" ] || git checkout --quiet "$3" --`

// CreationIn returns what a client asks for in the metadata of its request.
func CreationIn(ctx context.Context) (c lease.Creation, err error) {
	header, _ := metadata.FromIncomingContext(ctx)
	values := map[string]string{}
	for _, key := range identity.CreationKeys {
		switch found := header.Get(key); {
		case len(found) > 1 || len(found) == 1 && len(found[0]) > maxCreation:
			return c, apierror.Invalidf("invalid_creation", "", "The metadata %s comes once, with at most %d bytes.", key, maxCreation)
		case len(found) == 1:
			values[key] = found[0]
		}
	}
	c = lease.Creation{Git: values[identity.GitKey], GitRef: values[identity.GitRefKey], Snapshot: values[identity.SnapshotKey]}
	switch values[identity.StrictKey] {
	case "true":
		c.StrictEffects = true
	case "", "false":
	default:
		return c, apierror.Invalidf("invalid_creation", "", "The metadata %s is true or false.", identity.StrictKey)
	}
	return c, nil
}

// maxCreation is how long each value of what a workspace is created with may be, in bytes.
const maxCreation = 2048

// CheckOrigin returns what is wrong with the files that a workspace shall begin with. sources are as in Config; nil: any.
func CheckOrigin(c lease.Creation, sources []string) error {
	switch {
	case c.Git != "" && c.Snapshot != "":
		return apierror.Invalidf("invalid_creation", "", "A workspace begins with a repository or with a snapshot, not with both.")
	case c.Git == "" && c.GitRef != "":
		return apierror.Invalidf("invalid_creation", "", "A ref needs a repository.")
	case c.Git != "" && !isPlain(c.Git):
		return apierror.Invalidf("invalid_creation", "", "A repository's URL or path has no \"..\", no empty element, none of the characters \\ ? #, and no dot, slash or percent sign that is written as %%2e, %%2f or %%25.")
	case strings.HasPrefix(c.GitRef, "-"), strings.ContainsAny(c.GitRef, "\x00\n"):
		return apierror.Invalidf("invalid_creation", "", "A ref is one line that does not begin with a dash.")
	case c.Git == "" || sources == nil:
		return nil
	}
	for _, source := range sources {
		if c.Git == source || strings.HasSuffix(source, "/") && strings.HasPrefix(c.Git, source) {
			return nil
		}
	}
	return apierror.New(codes.PermissionDenied, "source_not_allowed", "Workspaces are not created from that repository here: the node's administrator has not allowed it.")
}

// isPlain reports whether a repository's URL or path names what it seems to name when its beginning is compared, also once it is decoded.
func isPlain(git string) bool {
	at := git
	if strings.Contains(git, "://") {
		u, err := url.Parse(git)
		if err != nil {
			return false
		}
		for _, coded := range []string{"%2e", "%2f", "%25"} {
			if strings.Contains(strings.ToLower(git), coded) {
				return false
			}
		}
		at = u.Path
	}
	at = "/" + strings.TrimPrefix(strings.TrimSuffix(at, "/"), "/")
	return path.Clean(at) == at && !strings.ContainsAny(git+at, "\\?#\x00\n")
}

// hasOrigin reports whether the workspace's files are to be those that it begins with. They are in a snapshot before anything
// runs there, so they are not asked for again once there are records.
func hasOrigin(view *lease.View) bool {
	_, saved := view.Snapshot()
	return !saved && view.Count() == 0 && (view.Creation().Git != "" || view.Creation().Snapshot != "")
}

// fill fills the empty directory of files with those that the workspace begins with.
func (u *unit) fill(ctx context.Context, c lease.Creation) error {
	if err := CheckOrigin(c, u.node.sources()); err != nil {
		return err
	}
	if c.Git != "" {
		return u.clone(ctx, c)
	}
	return snapshot.LoadNamed(ctx, u.node.Objects, c.Snapshot, u.at.place, kept, "files")
}

// create has a new workspace begin as its client asks, and as the node is configured. A request for one that exists is not asked.
func (u *unit) create(view *lease.View) error {
	if view.IsNew() {
		c, err := u.asks()
		if err == nil {
			err = CheckOrigin(c, u.node.sources())
		}
		if err != nil {
			return err
		}
		view.Create(c)
	}
	if u.node.Strict {
		view.RequireStrict()
	}
	before := view.Creation().Volume
	if u.node.SharedVolume != "" {
		view.RequireVolume()
	}
	u.at.isNew = view.Creation().Volume != before
	return u.chooseBase(view.Creation().Volume)
}

// saveOrigin stores the files that the workspace begins with, so that no owner needs their origin again.
func (u *unit) saveOrigin(ctx context.Context, l *lease.Lease) error {
	if u.isShared() {
		return nil
	}
	reference, err := snapshot.Save(ctx, u.objects, u.at.dir, kept)
	u.node.counters.saved(err)
	if err == nil {
		err = l.Snapshot(ctx, reference)
	}
	if err != nil {
		return fmt.Errorf("the files that the workspace begins with cannot be stored: %w", err)
	}
	u.saved, u.savedAt = reference, 0
	return nil
}

// sources returns Config.Sources, which allows nothing if it is empty.
func (n *Node) sources() []string { return append([]string{}, n.Sources...) }

// cloneDir makes an empty directory for what Git needs beside the files, also where one was left over.
func (u *unit) cloneDir() (dir string, remove func(), err error) {
	const name = "clone"
	root, err := os.OpenRoot(u.at.dir)
	if err != nil {
		return "", nil, err
	}
	if err := snapshot.Empty(root, name); err != nil {
		return "", nil, errors.Join(err, root.Close())
	}
	return u.in(name), func() { _ = errors.Join(removeBelow(root, name), root.Close()) }, nil
}

// clone clones the repository in a container, where Git reaches the network and nothing of the node's. A repository of this
// machine is at /tmp, and cannot be written. When ctx ends it returns the context's error.
func (u *unit) clone(ctx context.Context, c lease.Creation) error {
	limited, cancel := context.WithTimeout(ctx, cloneTime)
	defer cancel()
	dir, remove, err := u.cloneDir()
	if err != nil {
		return err
	}
	defer remove()
	if err := os.WriteFile(filepath.Join(dir, "program"), nil, 0o700); err != nil {
		return err
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer output.Close()
	at, tmp := c.Git, dir
	if filepath.IsAbs(c.Git) {
		at, tmp = "/tmp", c.Git
	}
	git, err := container.Start(container.Config{
		Groups: u.node.groups, Name: u.w.ID(),
		Workspace: filepath.Join(u.at.place, "files"), Home: dir, Tmp: tmp, TmpReadOnly: tmp != dir, Own: dir, Hide: u.node.Hide, Program: "/bin/sh", Args: []string{"-c", clone, "sh", c.Git, at, c.GitRef},
		Env: []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:http:ssh:git:file"},
	}, output)
	if err != nil {
		return apierror.New(codes.FailedPrecondition, "clone_failed", "The workspace was not created, since its repository cannot be used: %v", err)
	}
	stop := context.AfterFunc(limited, git.Kill)
	defer stop()
	<-git.Done()
	switch {
	case git.Err() == nil:
		return nil
	case ctx.Err() != nil: // the node is to end: the repository is not the reason
		return ctx.Err()
	case limited.Err() != nil:
		return apierror.New(codes.FailedPrecondition, "clone_failed", "The workspace was not created, since its repository was not cloned within %v.", cloneTime)
	}
	text, _ := os.ReadFile(output.Name())
	told := strings.TrimSpace(strings.ToValidUTF8(string(text[max(0, len(text)-1000):]), "\uFFFD"))
	return apierror.New(codes.FailedPrecondition, "clone_failed", "The workspace was not created, since its repository cannot be cloned (%v): %s", git.Err(), told)
}
