// Workspaces whose files are on a volume that all nodes mount: nothing of them is in snapshots, and their next owner has them as what ran has
// left them. They have strict effects, so that no two owners use the files at once. What the daemon keeps for undoing and of outputs is
// there, too. Its journal and its sockets are in the unit's directory, on the node's own disk.

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/snapshot"
)

// unitDirs are where a unit has its files.
type unitDirs struct {
	dir   string // of the unit, on the node's own disk
	place string // of files and what goes with them: dir, or the workspace's directory on the shared volume
	isNew bool   // place is one that no other node knows
}

// chooseBase sets where the workspace's files are. volume is its directory on the shared volume, empty for one without.
func (u *unit) chooseBase(volume string) error {
	switch {
	case volume == "":
		u.at.place = u.at.dir
	case u.node.SharedVolume == "":
		return ErrNoVolume
	default:
		u.at.place = filepath.Join(u.node.SharedVolume, volume)
	}
	return nil
}

// isShared reports whether the workspace's files are on the shared volume.
func (u *unit) isShared() bool { return u.at.place != "" && u.at.place != u.at.dir }

// onVolume reports whether the workspace has begun on the shared volume. It returns an [ErrNoVolume] if its log has records and the volume
// does not have its directory, which is so where something else is mounted.
func (u *unit) onVolume(view *lease.View) (bool, error) {
	_, err := os.Stat(filepath.Join(u.at.place, namesName))
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case view.Count() > 0 && !view.Restored():
		return false, fmt.Errorf("%w: %s has no directory %s", ErrNoVolume, u.node.SharedVolume, filepath.Base(u.at.place))
	}
	return false, nil
}

// markVolume notes on the volume that the workspace's files are there.
func (u *unit) markVolume() error {
	if !u.isShared() {
		return nil
	}
	return noteIn(u.at.place, namesName, u.w)
}

// emptyBase empties what the volume has of the workspace.
func (u *unit) emptyBase() error {
	if !u.isShared() {
		return nil
	}
	return errors.Join(u.removeVolume(), os.MkdirAll(u.at.place, 0o700))
}

// removeVolume removes what the volume has of the workspace.
func (u *unit) removeVolume() error {
	if !u.isShared() {
		return nil
	}
	root, err := os.OpenRoot(u.node.SharedVolume)
	if err != nil {
		return err
	}
	return errors.Join(removeBelow(root, filepath.Base(u.at.place)), root.Close())
}

// furnishBase makes the directories that [kept] has. dir is the unit's directory, in which those on the volume have their places.
func (u *unit) furnishBase(dir *os.Root) error {
	if !u.isShared() {
		return errors.Join(dir.MkdirAll("files", 0o700), dir.MkdirAll("home", 0o700))
	}
	if err := os.MkdirAll(u.at.place, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(u.at.place)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range kept {
		err = errors.Join(err, root.MkdirAll(name, 0o700))
		if strings.HasPrefix(name, "own/") {
			err = errors.Join(err, snapshot.Empty(dir, name))
		}
	}
	return err
}

// below is [container.Config.Below].
func (u *unit) below() map[string]string {
	if !u.isShared() {
		return nil
	}
	all := map[string]string{}
	for _, name := range kept {
		if at, is := strings.CutPrefix(name, "own/"); is {
			all[at] = filepath.Join(u.at.place, name)
		}
	}
	return all
}
