//go:build linux

package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Limits are what a container may use. The zero value is all that the machine has.
type Limits struct {
	Memory     int64   // bytes, without swap; 0: no limit
	Processors float64 // as many may be in use all the time; 0: no limit
}

// Groups are the control groups of containers, below that of this process. They may be used by several goroutines.
type Groups struct {
	limits  Limits
	unified bool              // version 2
	parents map[string]string // the directories in which groups are made, by controller; of version 2 all are the same
}

// A GroupsError is returned where this process may not make control groups.
type GroupsError struct{ Err error }

func (e *GroupsError) Error() string {
	return fmt.Sprintf("memory and processors cannot be limited: %v. The control group of this process must be its own, with the controllers "+
		"memory and cpu: Delegate=yes in a unit of systemd does that", e.Err)
}

func (e *GroupsError) Unwrap() error { return e.Err }

// What is made below this process's group: its own, since a group of version 2 with groups below it has no processes, and those of containers.
const (
	ownGroup    = "toold-node"
	groupPrefix = "toold-w-"
)

// period is that of limits of processors, in microseconds. It is the kernel's default.
const period = 100_000

// OpenGroups prepares control groups with limits. root is where /proc and /sys/fs/cgroup are: "/" for this machine. Version 2 and version 1 are used,
// whichever there is. It moves this process to a group below its own where version 2 needs that, and removes groups that
// are left over. It returns a [*GroupsError] where that is not allowed.
func OpenGroups(root string, limits Limits) (*Groups, error) {
	g := &Groups{limits: limits, parents: map[string]string{}}
	if err := g.open(root); err != nil {
		return nil, &GroupsError{err}
	}
	for _, parent := range g.parents {
		left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
		for _, dir := range left {
			_ = os.Remove(dir) // one that is in use stays
		}
	}
	return g, nil
}

func (g *Groups) open(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return err
	}
	mounts := filepath.Join(root, "sys/fs/cgroup")
	if _, err := os.Stat(filepath.Join(mounts, "cgroup.controllers")); err == nil {
		g.unified = true
	}
	of := groupsIn(string(text))
	for controller := range g.values() {
		mount, group := filepath.Join(mounts, controller), of[controller]
		if g.unified {
			mount, group = mounts, of[""]
		}
		if group == "" {
			return fmt.Errorf("the controller %s is not used", controller)
		}
		if path.Base(group) == ownGroup { // this process was moved there before
			group = path.Dir(group)
		}
		g.parents[controller] = filepath.Join(mount, group)
	}
	if g.unified {
		return g.delegate()
	}
	return g.try()
}

// groupsIn returns the groups that a process is in, by controller; that of version 2 by the empty name.
func groupsIn(text string) map[string]string {
	groups := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			groups[controller] = path.Clean(fields[2])
		}
	}
	return groups
}

// delegate has groups of version 2 below this process's own have the controllers.
func (g *Groups) delegate() error {
	for controller, parent := range g.parents {
		have, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(string(have)), controller) {
			return fmt.Errorf("%s does not have the controller %s", parent, controller)
		}
		own := filepath.Join(parent, ownGroup)
		if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := write(filepath.Join(own, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
		if err := write(filepath.Join(parent, "cgroup.subtree_control"), "+"+controller); err != nil {
			return err
		}
	}
	return g.try()
}

// try makes a group and removes it.
func (g *Groups) try() error {
	const name = "trial"
	_, err := g.create(name)
	g.remove(name)
	return err
}

// A value is what is written to a file of a group.
type value struct {
	file, text string
	optional   bool // not each kernel has it
}

// values returns the limits by their controllers.
func (g *Groups) values() map[string][]value {
	all := map[string][]value{}
	memory, quota := strconv.FormatInt(g.limits.Memory, 10), strconv.FormatInt(int64(g.limits.Processors*period), 10)
	switch {
	case g.limits.Memory > 0 && g.unified:
		all["memory"] = []value{{"memory.max", memory, false}, {"memory.swap.max", "0", true}}
	case g.limits.Memory > 0:
		all["memory"] = []value{{"memory.limit_in_bytes", memory, false}, {"memory.memsw.limit_in_bytes", memory, true}}
	}
	switch {
	case g.limits.Processors > 0 && g.unified:
		all["cpu"] = []value{{"cpu.max", fmt.Sprint(quota, " ", period), false}}
	case g.limits.Processors > 0:
		all["cpu"] = []value{{"cpu.cfs_period_us", strconv.Itoa(period), false}, {"cpu.cfs_quota_us", quota, false}}
	}
	return all
}

// create makes the groups of a container, and returns the files by which a process enters them.
func (g *Groups) create(name string) (entries []string, err error) {
	if g == nil {
		return nil, nil
	}
	for controller, values := range g.values() {
		dir := filepath.Join(g.parents[controller], groupPrefix+name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		for _, v := range values {
			if err := write(filepath.Join(dir, v.file), v.text); err != nil && !v.optional {
				return nil, err
			}
		}
		if entry := filepath.Join(dir, "cgroup.procs"); !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// remove removes the groups of a container that has ended. What cannot be removed is removed by the next [OpenGroups].
func (g *Groups) remove(name string) {
	if g == nil {
		return
	}
	for _, parent := range g.parents {
		_ = os.Remove(filepath.Join(parent, groupPrefix+name))
	}
}

// enterGroups moves this process into groups.
func enterGroups(entries []string) error {
	for _, entry := range entries {
		if err := write(entry, "0"); err != nil { // which is the process that writes
			return fmt.Errorf("the control group cannot be entered: %w", err)
		}
	}
	return nil
}

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644) // the kernel lets no file be created
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
