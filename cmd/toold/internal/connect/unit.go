package connect

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/toold/toold/daemon/access"
)

// socketUnit is the user unit by which systemd listens for the daemon.
const socketUnit = "toold.socket"

// unitEnabled reports whether the user's systemd runs, and listens at the socket or would do so at the next login. Then systemd
// starts the daemon, not a client: systemd restarts and limits it.
func (f *Finder) unitEnabled() bool {
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if runtime == "" || f.Socket != access.DefaultSocket() || !exists(filepath.Join(runtime, "systemd", "private")) {
		return false
	}
	home, _ := os.UserHomeDir() // empty: not known
	own := filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "systemd", "user")
	for _, dir := range []string{own, "/etc/systemd/user", "/usr/lib/systemd/user", "/lib/systemd/user"} {
		if exists(filepath.Join(dir, "sockets.target.wants", socketUnit)) {
			return true
		}
	}
	return false
}

// UnitWaits reports whether systemd listens at the socket and no daemon runs: a connection would start one. It is known where the
// system shows who holds a lock.
func (f *Finder) UnitWaits() bool {
	return f.Remote.Address == "" && f.unitEnabled() && exists(f.Socket) && f.holder() == nil
}

// exists reports whether there is a file of that name, even a link that leads nowhere.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// startUnit has systemd listen at the socket.
func startUnit(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "systemctl", "--user", "start", socketUnit).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
