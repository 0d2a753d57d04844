// Caches: overlay mounts that show the user's own files below what the sandbox writes. They are
// made once, in a mount namespace that serves every instance with the same caches. The kernel
// allows only one overlay at a time to write to a folder.

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// newLayers makes a mount namespace like the daemon's, with overlays in it. If the kernel cannot make
// one, the folder of what was written is mounted by itself.
func newLayers(places []Place, users *os.File) (*os.File, error) {
	plain := map[string]bool{}
	for {
		mounts, failed, err := mountLayers(places, users, plain)
		if err == nil || failed < 0 || plain[places[failed].Path] {
			return mounts, err
		}
		plain[places[failed].Path] = true
	}
}

// mountLayers mounts the overlays, except for those of the plain paths. failed is the index of the
// overlay that could not be mounted; -1: none.
func mountLayers(places []Place, users *os.File, plain map[string]bool) (mounts *os.File, failed int, err error) {
	m := newMaker(users)
	m.do(unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	m.do(unix.SYS_MOUNT, "", "/", "", unix.MS_REC|unix.MS_SLAVE, 0) // later mounts are seen too
	const about = "laying a cache over "
	for _, place := range places {
		m.about = about + place.Path
		if plain[place.Path] {
			m.put(m.tree(place.Upper()), place.source())
		} else {
			m.overlay(place)
		}
	}
	made := m.namespace("mnt")
	if err := m.carryOut(); err != nil {
		last := (*m.steps)[m.failed.step]
		return nil, slices.IndexFunc(places, func(p Place) bool { return last.about == about+p.Path }), err
	}
	for _, place := range places { // the kernel makes a folder there that its owner could not remove together with its parent
		_ = os.Chmod(filepath.Join(place.Above, workFolder, "work"), 0o700) //nolint:gosec // it is a folder
	}
	return made.file("layers"), -1, nil
}

// overlay mounts one overlay.
func (m *maker) overlay(p Place) {
	const setFlag = 0 // FSCONFIG_SET_FLAG of linux/mount.h
	fs := m.filesystem("overlay", "source", "overlay", "lowerdir", p.Path, "upperdir", p.Upper(), "workdir", filepath.Join(p.Above, workFolder))
	m.do(unix.SYS_FSCONFIG, fs.at(), setFlag, "userxattr", 0, 0) // attributes of files have no effect, such as redirection
	m.put(m.mounted(fs), p.source())
}

// layersOf returns the mount namespace with the overlays of a policy; nil: there are none. mu is held.
func (c *instances) layersOf(p Policy) (*os.File, error) {
	places := slices.DeleteFunc(slices.Clone(p.Places), func(place Place) bool { return place.Above == "" })
	slices.SortFunc(places, func(a, b Place) int { return strings.Compare(a.Above, b.Above) })
	if len(places) == 0 {
		return nil, nil
	}
	var key strings.Builder
	for _, place := range places {
		key.WriteString(place.Path + "\x00" + place.Above + "\x00")
	}
	return c.layers.enter(key.String(), func() (*os.File, error) { return newLayers(places, c.users) })
}
