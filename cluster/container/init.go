//go:build linux

package container

import (
	"encoding/json"
	"errors"
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

// Init is called at the beginning of main: if the program was started as process 1 of a container, it does that work and
// does not return.
func Init() {
	if len(os.Args) != 2 || os.Args[0] != initName {
		return
	}
	syscall.Exit(initMain(os.Args[1])) // nothing is to be done at the end; os.Exit takes a second under the race detector
}

// initMain sets the container up, starts the program, and waits for it and for the orphans that become its children.
func initMain(text string) (code int) {
	report := os.NewFile(3, "report") // to the process that has started the container: why it cannot be set up
	beats := os.NewFile(4, "beats")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	var config Config
	err := json.Unmarshal([]byte(text), &config)
	if err == nil {
		err = enterGroups(config.Entries) // while the machine's files are seen
	}
	if err == nil {
		err = furnish(config)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	program := exec.Command(Own+"/program", config.Args...)
	program.Env = append(slices.Clip(config.Env), "HOME="+Home, "TMPDIR=/tmp")
	program.Dir, program.Stdout, program.Stderr = Workspace, os.Stdout, os.Stderr
	// in namespaces below those that own the mounts: from there they cannot be undone
	only := []syscall.SysProcIDMap{{Size: 1}}
	program.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: only, GidMappings: only}
	if config.Lives > 0 && Now() >= config.Since.Add(config.Lives) {
		err = errors.Join(err, errors.New("its time was over before the program was started"))
	}
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		_, _ = report.WriteString(err.Error())
		return 1
	}
	_ = report.Close()
	if config.Lives > 0 {
		go supervise(beats, config.Since, config.Lives)
	}
	go func() {
		for range signals {
			_ = program.Process.Signal(syscall.SIGTERM)
		}
	}()
	code = reap(program.Process.Pid)
	if ending.Load() {
		select {} // supervise ends this process
	}
	return code
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

// A place is something that is mounted in the container's root: a directory or file of the machine, by a descriptor that
// stays valid whatever is mounted over its path.
type place struct {
	at       string // in the container
	fd       int
	writable bool
}

// furnish builds the root of the container in a file system in memory, and makes it the root.
func furnish(config Config) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	places, links, err := find(config)
	if err != nil {
		return err
	}
	kept, err := readResolver(config.Resolver)
	if err != nil {
		return err
	}
	const root = "/tmp" // any directory: nothing else in this namespace uses it
	if err := unix.Mount("container", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
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
	if err := devices(root); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	for _, hidden := range append([]string{"/run"}, config.Hide...) {
		if err := hide(root, hidden, kept); err != nil {
			return fmt.Errorf("%s cannot be hidden: %w", hidden, err)
		}
	}
	return enter(root)
}

// find opens what is to be seen in the container: the directories of the root, and the parts of the configuration, which
// are mounted over them.
func find(config Config) (places []place, links map[string]string, err error) {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, nil, err
	}
	links = map[string]string{}
	add := func(at, from string, writable bool) error {
		fd, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		places = append(places, place{at, fd, writable})
		return nil
	}
	// /proc and /dev come later, and the home directories of the machine's users are not seen
	own := []string{"proc", "dev", "tmp", "home", "root", strings.Trim(Workspace, "/"), strings.Trim(Own, "/")}
	for _, entry := range entries {
		name := entry.Name()
		if target, err := os.Readlink("/" + name); err == nil {
			links[name] = target
		} else if entry.IsDir() && !slices.Contains(own, name) {
			if err := add("/"+name, "/"+name, false); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, part := range [][2]string{{Workspace, config.Workspace}, {Home, config.Home}, {"/tmp", config.Tmp}, {"/var/tmp", config.Tmp}, {Own, config.Own}} {
		if err := add(part[0], part[1], !config.TmpReadOnly || !strings.HasSuffix(part[0], "/tmp")); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range config.Fixed {
		if err := add(filepath.Join(Own, name), filepath.Join(config.Own, name), false); err != nil {
			return nil, nil, err
		}
	}
	for at, from := range config.Below {
		if err := add(filepath.Join(Own, at), from, true); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range deviceNames {
		if err := add("/dev/"+name, "/dev/"+name, true); err != nil {
			return nil, nil, err
		}
	}
	return places, links, add(Own+"/program", config.Program, false)
}

func (p place) mount(root string) error {
	defer unix.Close(p.fd) // nothing in the container may find it
	var info unix.Stat_t
	if err := unix.Fstat(p.fd, &info); err != nil {
		return err
	}
	at := filepath.Join(root, p.at)
	isDir, dir := info.Mode&unix.S_IFMT == unix.S_IFDIR, at
	if !isDir {
		dir = filepath.Dir(at)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if !isDir {
		f, err := os.OpenFile(at, os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		_ = f.Close()
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", p.fd), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil || p.writable {
		return err
	}
	// with everything that is mounted below it; needs Linux 5.12
	return unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// deviceNames are the devices without a machine behind them.
var deviceNames = []string{"null", "zero", "full", "random", "urandom", "tty"}

// devices adds to /dev what is not a device of the machine: terminals and shared memory of the container's own.
func devices(root string) error {
	in := func(name string) string { return filepath.Join(root, "dev", name) }
	for _, dir := range []string{"pts", "shm"} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", in("pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return err
	}
	if err := unix.Mount("shm", in("shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	for name, target := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, in(name)); err != nil {
			return err
		}
	}
	return nil
}

// A keptFile is one that stays where a directory is hidden, as it was when the container was made.
type keptFile struct {
	path    string // without links
	content []byte
}

// readResolver returns the file by which programs find name servers: on many machines a link leads to one that is hidden, below /run.
func readResolver(path string) (kept keptFile, err error) {
	if kept.path, err = filepath.EvalSymlinks(path); err == nil {
		kept.content, err = os.ReadFile(kept.path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return keptFile{}, nil
	}
	return kept, err
}

// hide mounts a directory that cannot be written over a directory below root, if there is one. It is empty but for the kept file, if that was
// in it.
func hide(root, dir string, kept keptFile) error {
	if !filepath.IsAbs(dir) {
		return errors.New("it is not an absolute path")
	}
	at := filepath.Join(root, dir)
	if _, err := os.Stat(at); err != nil {
		return nil
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("hidden", at, "tmpfs", flags, "mode=0755"); err != nil {
		return err
	}
	if name := filepath.Join(root, kept.path); strings.HasPrefix(kept.path, filepath.Clean(dir)+"/") {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, kept.content, 0o644)); err != nil {
			return err
		}
	}
	return unix.Mount("", at, "", flags|unix.MS_REMOUNT|unix.MS_RDONLY, "")
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
