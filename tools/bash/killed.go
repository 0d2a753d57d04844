package bash

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/toold/toold/tools/exec/sandbox"
)

// killedByKernel is the exit code of a shell whose last command was ended by SIGKILL.
const killedByKernel = 128 + 9

// noteMemory notes that the kernel may have killed a process of the command, since the daemon's control group has reached its limit of memory.
// The exit code does not show that.
func (r *shellRun) noteMemory(exit sandbox.Exit) {
	if exit.Stopped || exit.Code != killedByKernel && exit.Signal != "SIGKILL" {
		return
	}
	if killed, limit := memoryKills("/"); killed > 0 {
		r.note("A process of the command was ended by SIGKILL. All processes of this daemon together may use %s of memory, and the kernel has killed %d of them so far since they had reached that. Use less memory, or run less at once.", limit, killed)
	}
}

// groupFiles has for each version of control groups where a group counts the processes that were killed, and its limit.
var groupFiles = []struct{ controllers, mount, events, limit string }{
	{"", "sys/fs/cgroup", "memory.events", "memory.max"},
	{"memory", "sys/fs/cgroup/memory", "memory.oom_control", "memory.limit_in_bytes"},
}

// memoryKills returns how many processes the kernel has killed, since the control group of this process had reached its limit of memory, and
// the limit. 0: none, or it is not known. /proc and /sys are below root.
func memoryKills(root string) (killed int, limit string) {
	text, _ := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, version := range groupFiles {
			if len(fields) != 3 || fields[1] != version.controllers {
				continue
			}
			group := path.Join(root, version.mount, fields[2])
			events, _ := os.ReadFile(path.Join(group, version.events))
			for event := range bytes.Lines(events) {
				if name, number, _ := strings.Cut(strings.TrimSpace(string(event)), " "); name == "oom_kill" {
					killed, _ = strconv.Atoi(number)
				}
			}
			if most, err := os.ReadFile(path.Join(group, version.limit)); killed > 0 && err == nil {
				return killed, inMiB(strings.TrimSpace(string(most)))
			}
			killed = 0
		}
	}
	return 0, ""
}

// inMiB returns a limit as a person reads it.
func inMiB(limit string) string {
	n, err := strconv.ParseInt(limit, 10, 64)
	if err != nil {
		return "a part"
	}
	return fmt.Sprint(n>>20, " MiB")
}
