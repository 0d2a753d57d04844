//go:build linux

package cell

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Init is called at the beginning of main: if the program was started as process 1 of a cell, it does that work and
// does not return.
func Init() {
	if len(os.Args) != 2 || os.Args[0] != initName {
		return
	}
	syscall.Exit(initMain(os.Args[1])) // nothing is to be done at the end; os.Exit takes a second under the race detector
}

// initMain sets the cell up, starts the program, and waits for it and for the orphans that become its children.
func initMain(text string) (code int) {
	report := os.NewFile(3, "report") // to the process that has started the cell: why it cannot be set up
	syscall.CloseOnExec(3)
	var config Config
	err := json.Unmarshal([]byte(text), &config)
	if err == nil {
		err = furnish(config)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	program := exec.Command(Own+"/program", config.Args...)
	program.Env = append(slices.Clip(config.Env), "HOME="+Home, "TMPDIR=/tmp")
	program.Dir, program.Stdout, program.Stderr = Workspace, os.Stdout, os.Stderr
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		_, _ = report.WriteString(err.Error())
		return 1
	}
	_ = report.Close()
	go func() {
		for range signals {
			_ = program.Process.Signal(syscall.SIGTERM)
		}
	}()
	return reap(program.Process.Pid)
}

// reap waits for every child until the program itself has ended, and returns its status.
func reap(program int) (code int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 1
		case pid == program && status.Exited():
			return status.ExitStatus()
		case pid == program:
			return 128 + int(status.Signal())
		}
	}
}

// A place is something that is mounted in the cell's root: a directory or file of the machine, by a descriptor that
// stays valid whatever is mounted over its path.
type place struct {
	at string // in the cell
	fd int
}

// furnish builds the root of the cell in a file system in memory, and makes it the root.
func furnish(config Config) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	places, links, err := find(config)
	if err != nil {
		return err
	}
	const root = "/tmp" // any directory: nothing else in this namespace uses it
	if err := unix.Mount("cell", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("a file system in memory cannot be mounted: %w", err)
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	for _, p := range places {
		if err := p.mount(root); err != nil {
			return fmt.Errorf("%s: %w", p.at, err)
		}
	}
	for _, hidden := range append([]string{"/run"}, config.Hide...) {
		if err := hide(filepath.Join(root, hidden)); err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", hidden, err)
		}
	}
	return enter(root)
}

// find opens what is to be seen in the cell: the directories of the root, and the parts of the configuration, which
// are mounted over them.
func find(config Config) (places []place, links map[string]string, err error) {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, nil, err
	}
	links = map[string]string{}
	add := func(at, from string) error {
		fd, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		places = append(places, place{at, fd})
		return nil
	}
	// /proc comes later, and the home directories of the machine's users are not seen
	own := []string{"proc", "tmp", "home", "root", strings.Trim(Workspace, "/"), strings.Trim(Own, "/")}
	for _, entry := range entries {
		name := entry.Name()
		if target, err := os.Readlink("/" + name); err == nil {
			links[name] = target
		} else if entry.IsDir() && !slices.Contains(own, name) {
			if err := add("/"+name, "/"+name); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, part := range [][2]string{{Workspace, config.Workspace}, {Home, config.Home}, {"/tmp", config.Tmp}, {Own, config.Own}, {Own + "/program", config.Program}} {
		if err := add(part[0], part[1]); err != nil {
			return nil, nil, err
		}
	}
	return places, links, nil
}

func (p place) mount(root string) error {
	var info unix.Stat_t
	if err := unix.Fstat(p.fd, &info); err != nil {
		return err
	}
	at := filepath.Join(root, p.at)
	if info.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
	} else if f, err := os.OpenFile(at, os.O_CREATE, 0o600); err != nil {
		return err
	} else {
		_ = f.Close()
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", p.fd), at, "", unix.MS_BIND|unix.MS_REC, "")
}

// hide mounts an empty directory that cannot be written over a directory, if there is one.
func hide(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	return unix.Mount("hidden", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "mode=0755")
}

// enter makes dir the root directory, and mounts /proc.
func enter(dir string) error {
	for _, name := range []string{"proc", "old", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	// while the machine's /proc is still there: without it the kernel allows no other
	if err := unix.Mount("proc", filepath.Join(dir, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc cannot be mounted: %w", err)
	}
	if err := unix.PivotRoot(dir, filepath.Join(dir, "old")); err != nil {
		return fmt.Errorf("the root directory cannot be changed: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove("/old")
}
