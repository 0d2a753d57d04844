// What the machine has left, as Linux reports it: memory, and pressure. Elsewhere nothing is known.

package gate

import (
	"bytes"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// A Machine is what a machine, or the container that the daemon runs in, has left.
type Machine struct {
	Available, Total int64 // bytes of memory; Total 0: not known
	// MemoryPressure and ProcessorPressure are the share of the last 10 s, in percent, in which something waited
	// for memory or for a processor. 0 where the kernel does not count it.
	MemoryPressure, ProcessorPressure float64
}

// From this pressure on calls are delayed. Ours: on a machine whose processors are all used something always waits
// for one, but seldom for memory.
const (
	muchMemoryPressure    = 10.0
	muchProcessorPressure = 80.0
)

// isPressed reports whether calls are delayed.
func (m *Machine) isPressed() bool {
	return m.MemoryPressure >= muchMemoryPressure || m.ProcessorPressure >= muchProcessorPressure
}

// ReadMachine returns the memory and pressure of the machine whose /proc and /sys are below root: "/" for this one. What cannot be
// read is not known. The smaller of the machine's memory and that of the control groups (version 1 and 2) of this process
// counts.
func ReadMachine(root string) Machine {
	read := func(name string) []byte {
		data, _ := os.ReadFile(path.Join(root, name))
		return data
	}
	m := parseMeminfo(read("proc/meminfo"))
	m.MemoryPressure = parsePressure(read("proc/pressure/memory"))
	m.ProcessorPressure = parsePressure(read("proc/pressure/cpu"))
	if m.Total == 0 {
		return m
	}
	of := parseGroups(read("proc/self/cgroup"))
	for _, v := range versions {
		for dir := of[v.controller]; dir != ""; dir = above(dir) {
			at := path.Join(v.mount, dir)
			limit, found := parseBytes(read(path.Join(at, v.limit)))
			if !found {
				continue
			}
			used, _ := parseBytes(read(path.Join(at, v.usage)))
			free := parseField(read(path.Join(at, "memory.stat")), v.cache)
			m.Total, m.Available = min(m.Total, limit), max(0, min(m.Available, limit-max(0, used-free)))
		}
	}
	return m
}

// versions has for each version of control groups where a group's limit, usage and cache are. Of what a group uses, the kernel takes the cache of files
// back that it counts as inactive before it would refuse memory.
var versions = []struct{ controller, mount, limit, usage, cache string }{
	{"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
	{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
}

// above returns the group that the group is in; empty: it is the root. In a container the root is often all that is
// there, whatever path the group has outside.
func above(group string) string {
	if group == "/" {
		return ""
	}
	return path.Dir(group)
}

// parseGroups returns the groups that a process is in, by controller; that of version 2 by the empty name.
func parseGroups(text []byte) map[string]string {
	groups := map[string]string{}
	for line := range bytes.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "/") {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			groups[controller] = path.Clean(fields[2])
		}
	}
	return groups
}

// parseMeminfo returns the memory of the file /proc/meminfo. It is not known if the kernel does not report what is
// available.
func parseMeminfo(text []byte) (m Machine) {
	total, available := parseField(text, "MemTotal:"), parseField(text, "MemAvailable:")
	if total <= 0 || total > math.MaxInt64>>10 || !bytes.Contains(text, []byte("MemAvailable:")) {
		return Machine{}
	}
	return Machine{Total: total << 10, Available: min(available, total) << 10}
}

// parseField returns the number behind the name at the begin of a line; 0: there is none.
func parseField(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) >= 2 && string(fields[0]) == name {
			n, _ := parseBytes(fields[1])
			return n
		}
	}
	return 0
}

// parseBytes returns a number that is not negative. A limit that is "max" is none.
func parseBytes(text []byte) (n int64, found bool) {
	u, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63)
	if err != nil {
		return 0, false
	}
	return int64(u), true
}

// parsePressure returns the share of the last 10 s, in percent, in which something waited.
func parsePressure(text []byte) float64 {
	for line := range bytes.Lines(text) {
		rest, is := bytes.CutPrefix(line, []byte("some avg10="))
		if !is {
			continue
		}
		share, _, _ := bytes.Cut(rest, []byte(" "))
		if percent, err := strconv.ParseFloat(string(share), 64); err == nil && percent >= 0 && percent <= 100 {
			return percent
		}
	}
	return 0
}
