// Commands that write to disks as a whole or end the system, by what devices are called.

package damage

import (
	"slices"
	"strings"

	"github.com/toold/toold/tools/exec/shell"
)

// onDisks are programs that write to a disk as a whole, each with the words by which they only look
// at it.
var onDisks = map[string]string{
	"mke2fs": "-n", "mkdosfs": "", "mkntfs": "-n", "mkswap": "", "wipefs": "-n --no-act", "blkdiscard": "", "badblocks": "",
	"fdisk": "-l --list", "cfdisk": "", "gdisk": "-l", "sgdisk": "-p --print -v -i", "sfdisk": "-l --list -d --dump",
	"parted": "-l --list print", "cryptsetup": "status isLuks luksDump", "pvcreate": "", "mdadm": "--detail -D --examine -E",
	"hdparm": "-I -i -g -t -T -C", "nvme": "list list-subsys smart-log id-ctrl id-ns",
	"shred": "", "dd": "", "ddrescue": "", "truncate": "", "install": "", "tee": "",
}

// ending are programs that end the system, and what systemctl and loginctl take for that.
const ending = "shutdown reboot poweroff halt kexec"

// looking are subcommands of systemctl that only show.
const looking = "status show cat help is-active is-enabled is-failed list-dependencies list-units"

// endsMachine returns why a command would destroy a disk or end the system; empty: it would not.
func (t *scriptState) endsMachine(c *shell.Command, name string, dirs []string) string {
	looks, onDisk := onDisks[name]
	switch {
	case strings.HasPrefix(name, "mkfs"), onDisk && !mentions(c, looks):
		if slices.ContainsFunc(c.Words[1:], func(w shell.Word) bool { return t.maybeDevice(w, dirs) }) {
			return "writes to what may be a block device"
		}
	case among(ending, name):
		if !mentions(c, "-c --help --version") {
			return "ends the whole system"
		}
	case name == "init", name == "telinit":
		if len(c.Words) > 1 && among("0 6", c.Words[1].Text) {
			return "ends the whole system"
		}
	case name == "systemctl", name == "loginctl":
		words := operands(c)
		if len(words) > 0 && !among(looking, words[0].Text) && slices.ContainsFunc(words, endsSystem) {
			return "ends the whole system"
		}
	}
	return ""
}

func endsSystem(w shell.Word) bool {
	return among(ending+" emergency rescue runlevel0 runlevel6", strings.TrimSuffix(w.Text, ".target"))
}

// maybeDevice reports whether a word, or what follows its of=, may name a device. What is nothing
// but a variable may.
func (t *scriptState) maybeDevice(w shell.Word, dirs []string) bool {
	if key, value, ok := strings.Cut(w.Text, "="); ok && key == "of" {
		w.Text = value
	}
	for _, r := range t.readings(w) {
		if !t.step(len(dirs)) || r.lost || t.astray && isRelative(r.text) || r.text == "" && r.guessed || slices.ContainsFunc(dirs, func(dir string) bool { return isDevice(t.absolute(dir, r.text)) }) {
			return true
		}
	}
	return false
}

// harmless are the names in /dev behind which there is no disk: pseudo-devices, terminals,
// descriptors, shared memory, and the names that bash makes connections of.
const harmless = "null zero full random urandom stdin stdout stderr tty ptmx console fd pts shm mqueue tcp udp"

// isDevice reports whether a path may be that of a device with something on it.
func isDevice(name string) bool {
	if name == "/proc/sysrq-trigger" || strings.HasPrefix(name, "/sys/power/") {
		return true
	}
	device, ok := strings.CutPrefix(name, "/dev/")
	first, _, _ := strings.Cut(device, "/")
	return ok && !among(harmless, first)
}
