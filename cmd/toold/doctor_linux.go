package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How little room a file system may have. The journal keeps 8 MiB of it for the ends of calls.
const (
	roomFails = 32 << 20
	roomWarns = 512 << 20
)

// networked names file systems on which locks and synced writes are another machine's, so that the journal is not safe.
var networked = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.V9FS_MAGIC: "9P", unix.AFS_SUPER_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.CEPH_SUPER_MAGIC: "Ceph",
}

// checkFileSystem looks at whether and how a directory can be written.
func (d *doctor) checkFileSystem(check, dir string) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		d.note(check, fault, fmt.Sprintf("%s: %v", dir, err), "")
		return
	}
	room := int64(fs.Bavail) * fs.Bsize
	const other = "name another one with XDG_STATE_HOME, or with toold serve --state-dir"
	switch name, remote := networked[fs.Type]; {
	case fs.Flags&unix.ST_RDONLY != 0:
		d.note(check, fault, dir+" is on a file system that is mounted read-only", other)
	case unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
		d.note(check, fault, dir+" cannot be written by you", "chown it to you, or "+other)
	case room < roomFails:
		d.note(check, fault, fmt.Sprintf("the file system of %s is full (%d MiB free)", dir, room>>20), "free some space, or "+other)
	case remote:
		d.note(check, warning, fmt.Sprintf("%s is on %s, which does not keep a journal safe when the network fails", dir, name), other)
	case room < roomWarns:
		d.note(check, warning, fmt.Sprintf("the file system of %s has only %d MiB free", dir, room>>20), "free some space, or "+other)
	}
}

// The least that a day's work needs of the machine's limits.
const (
	leastFiles     = 1024
	leastInstances = 32
	leastWatches   = 4096
)

// checkMachine looks at limits and the clock.
func (d *doctor) checkMachine() {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Max < leastFiles {
		d.note("open files", warning, fmt.Sprintf("a process may have only %d files open", files.Max), fmt.Sprintf("ulimit -Hn %d, or LimitNOFILE= in the daemon's unit", leastFiles))
	} else {
		d.note("open files", fine, fmt.Sprintf("up to %d", files.Max), "")
	}
	d.checkSysctl("fs.inotify.max_user_instances", leastInstances)
	d.checkSysctl("fs.inotify.max_user_watches", leastWatches)
	newest := time.Time{}
	for _, name := range []string{d.state, d.state + "/journal", d.state + "/lock"} {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	if ahead := time.Until(newest); ahead > time.Minute {
		d.note("clock", warning, fmt.Sprintf("%s was written %s from now: the clock was set back", d.state, ahead.Round(time.Minute)), "set the clock (timedatectl)")
		return
	}
	d.note("clock", fine, time.Now().Format(time.RFC3339), "")
}

// checkSysctl looks at a setting of the kernel that can be too low. One that cannot be read is left out.
func (d *doctor) checkSysctl(name string, least int) {
	if value, found := sysctl(name); found && value < least {
		d.note(name, warning, fmt.Sprintf("it is %d, so changes of files may be missed", value), fmt.Sprintf("sudo sysctl -w %s=%d", name, least))
	}
}

func sysctl(name string) (value int, found bool) {
	text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &value)
	}
	return value, err == nil
}

// namespaceAdvice is what to type where the kernel refuses namespaces, or "".
func namespaceAdvice() string {
	for _, s := range []struct {
		name      string
		bad, good int
	}{
		{"kernel.apparmor_restrict_unprivileged_userns", 1, 0},
		{"kernel.unprivileged_userns_clone", 0, 1},
		{"user.max_user_namespaces", 0, 10000},
		{"user.max_mnt_namespaces", 0, 10000},
	} {
		if value, found := sysctl(s.name); found && value == s.bad {
			return fmt.Sprintf("sudo sysctl -w %s=%d", s.name, s.good)
		}
	}
	return ""
}
