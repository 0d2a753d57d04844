// Directories of workspaces that the node has given up, or that others have taken over. Only what the log definitely has
// counts: an answer that is outdated, or none, removes nothing.

package node

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/snapshot"
)

// namesName is the file in a unit's directory that has the workspace's names, as the JSON of a log.Workspace.
const namesName = "workspace.json"

// removedPrefix begins the names of directories that are about to be removed.
const removedPrefix = "removed-"

// workspaceID is what a unit's directory is called.
var workspaceID = regexp.MustCompile(`^[a-z2-7]{24}$`)

// tidyAtTimes tidies until the node ends.
func (n *Node) tidyAtTimes() {
	ticks := time.NewTicker(n.Tidy)
	defer ticks.Stop()
	for {
		n.tidy(n.lost)
		select {
		case <-ticks.C:
		case <-n.lost.Done():
			return
		}
	}
}

// tidy removes the directories that are not needed any more, one after the other.
func (n *Node) tidy(ctx context.Context) {
	root, err := os.OpenRoot(n.Dir)
	if err != nil {
		n.Logger.Warn("the node's directory cannot be opened", zap.Error(err))
		return
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries {
		if ctx.Err() != nil {
			return
		}
		err = errors.Join(err, n.tidyOne(ctx, root, entry.Name()))
	}
	if err != nil {
		n.Logger.Warn("not all directories of workspaces that the node has given up were looked at", zap.Error(err))
	}
}

// tidyOne removes a directory of a workspace if it is not needed any more.
func (n *Node) tidyOne(ctx context.Context, root *os.Root, name string) error {
	if strings.HasPrefix(name, removedPrefix) { // by a node that has ended meanwhile
		return removeBelow(root, name)
	}
	if !workspaceID.MatchString(name) || n.has(name) {
		return nil
	}
	found, err := readMarker(filepath.Join(n.Dir, name))
	if err != nil {
		return err
	}
	if found.exists {
		if needed, err := n.needs(ctx, name, found); needed || err != nil {
			return err
		}
	}
	aside, err := n.setAside(root, name, found)
	if aside == "" || err != nil {
		return err
	}
	n.Logger.Info("the directory of a workspace that the node has given up is removed", zap.String("directory", name))
	return removeBelow(root, aside)
}

// has reports whether a unit uses the directory.
func (n *Node) has(id string) bool {
	for _, u := range n.all() {
		if u.w.ID() == id {
			return true
		}
	}
	return false
}

// setAside renames a directory that no unit uses and that is as it was found. Otherwise it returns an empty name. No unit
// begins meanwhile.
func (n *Node) setAside(root *os.Root, name string, found foundMarker) (aside string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w := range n.units {
		if w.ID() == name {
			return "", nil
		}
	}
	if now, err := readMarker(filepath.Join(n.Dir, name)); err != nil || now != found {
		return "", err
	}
	aside = removedPrefix + name
	return aside, root.Rename(name, aside)
}

// removeBelow removes a directory whatever permissions its files have.
func removeBelow(root *os.Root, name string) error {
	return errors.Join(snapshot.Empty(root, name), root.Remove(name))
}

// foundMarker is a marker as it stands in a unit's directory, if it does: without one the files are of no use.
type foundMarker struct {
	marker
	written time.Time
	exists  bool
}

func readMarker(dir string) (found foundMarker, err error) {
	file := filepath.Join(dir, markerName)
	info, err := os.Stat(file)
	if err == nil {
		var text []byte
		if text, err = os.ReadFile(file); err == nil {
			err = json.Unmarshal(text, &found.marker)
		}
		found.written, found.exists = info.ModTime(), true
	}
	if errors.Is(err, fs.ErrNotExist) {
		return foundMarker{}, nil
	}
	return found, err
}

// supersededKeep is how long at most files stay that another owner has gone on without, so that an administrator can look at
// what a node that was lost has left.
const supersededKeep = 24 * time.Hour

// needs reports whether a directory may have files that no snapshot has, or is kept for its next use.
//
// Epochs only grow, and an answer of the log may be outdated but not ahead. So the files are superseded where the log has
// an epoch that is higher than theirs, with any owner: they would be fetched again. In their own epoch they are all in a snapshot
// if the log ends with their release.
func (n *Node) needs(ctx context.Context, id string, found foundMarker) (bool, error) {
	text, err := os.ReadFile(filepath.Join(n.Dir, id, namesName))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // whose it is is not known
	}
	if err != nil {
		return true, err
	}
	var w log.Workspace
	if err := json.Unmarshal(text, &w); err != nil || w.ID() != id {
		return true, err
	}
	ctx, cancel := context.WithTimeout(ctx, pausedTime)
	defer cancel()
	end, err := lease.Last(ctx, n.Log, w)
	switch {
	case err != nil:
		return true, err
	case end.Epoch > max(found.Epoch, found.Taking):
		return time.Since(found.written) < min(n.Keep, supersededKeep), nil
	case end.Epoch == found.Epoch && end.Owner == n.Name && end.Released:
		return time.Since(found.written) < n.Keep, nil
	default:
		return true, nil
	}
}

// discard removes what the node has of a workspace, if it has ended since the workspace was deleted.
func (u *unit) discard(why error) {
	if !isDeletion(why) {
		return
	}
	root, err := os.OpenRoot(u.node.Dir)
	if err == nil {
		err = errors.Join(removeBelow(root, u.w.ID()), root.Close(), u.removeVolume())
	}
	if err != nil {
		u.log.Warn("the directory of a workspace that was deleted could not be removed", zap.String("directory", u.at.dir), zap.Error(err))
	}
}
