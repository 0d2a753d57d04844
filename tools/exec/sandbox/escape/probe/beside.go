//go:build linux

// Doors to processes of other calls: of another session, and of an earlier call of the same one, which was allowed more and was
// left running. And such a process itself.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/tools/exec/sandbox/escape/scene"
)

// beside is a process of another call. It listens in dir, on an abstract name and on the loopback, as far as it may, and writes
// down who comes. To who comes it passes a file in out, unless that is empty. It runs until it is killed.
func beside(dir, abstract, out string) error {
	heard := must(os.OpenFile(filepath.Join(dir, "heard"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644))
	for _, to := range []struct{ network, address string }{{"unix", dir + "/s"}, {"unix", "@" + abstract}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(to.network, to.address)
		if err != nil {
			continue // where there are no sockets
		}
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			check(os.WriteFile(filepath.Join(dir, "port"), []byte(strconv.Itoa(tcp.Port)), 0o644))
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				meet(c, heard, out)
				_ = c.Close()
			}
		}()
	}
	fmt.Fprintln(os.Stdout, "ready")
	for {
		if err := unix.Pause(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// meet writes down what is said, and passes the file.
func meet(c net.Conn, heard io.Writer, out string) {
	said, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return
	}
	fmt.Fprint(heard, said)
	unixConn, ok := c.(*net.UnixConn)
	if !ok || out == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(out, strings.TrimSpace(said), victimFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _, _ = unixConn.WriteMsgUnix([]byte("!"), unix.UnixRights(int(f.Fd())), nil)
}

func besides() []door {
	f := func(name string, try func(s *scene.Scene, say []byte) error) door {
		return plain("another session", name, func(s *scene.Scene) error { return try(s, []byte(scene.Slug(name)+"\n")) })
	}
	left := func(name string, try func(s *scene.Scene, pid int) error) door {
		return plain("left running", name, func(s *scene.Scene) error { return try(s, leftRunning(s)) })
	}
	return []door{
		f("connect to a Unix socket of another session", func(s *scene.Scene, say []byte) error { return visit("unix", s.Beside+"/s", say) }),
		f("connect to an abstract Unix socket of another session", func(s *scene.Scene, say []byte) error {
			return visit("unix", "@"+s.BesideAbstract, say)
		}),
		f("connect to a TCP listener of another session", func(s *scene.Scene, say []byte) error {
			port := must(os.ReadFile(s.Beside + "/port"))
			return visit("tcp", "127.0.0.1:"+string(port), say)
		}),
		left("write outside through /proc/PID/root of a process left running", func(s *scene.Scene, pid int) error {
			return scribble(fmt.Sprintf("/proc/%d/root%s", pid, out(s, victimFile)), unix.O_WRONLY)
		}),
		left("write outside through /proc/PID/cwd of a process left running", func(s *scene.Scene, pid int) error {
			return scribble(fmt.Sprintf("/proc/%d/cwd/%s/%s", pid, filepath.Base(s.Out), victimFile), unix.O_WRONLY)
		}),
		{"ptrace seize of a process left running", "left running", false, func(s *scene.Scene) (string, error) {
			return "seized; it is let go when this process ends", unix.PtraceSeize(leftRunning(s))
		}},
		{"signal a process left running", "left running", false, func(s *scene.Scene) (string, error) {
			return "it would reach it", unix.Kill(leftRunning(s), 0)
		}},
		plain("left running", "write to a file that a process left running passes", func(s *scene.Scene) error {
			return takeFile(s, scene.Slug("write to a file that a process left running passes")+"\n")
		}),
	}
}

// visit connects, says it, and waits until it was heard.
func visit(network, address string, say []byte) error {
	c := must(net.Dial(network, address))
	defer c.Close()
	must(c.Write(say))
	_, err := io.Copy(io.Discard, c)
	return err
}

// leftRunning is the number of the process that an earlier call has left, if it means that one here.
func leftRunning(s *scene.Scene) int {
	text := must(os.ReadFile(s.Left + "/pid"))
	pid := must(strconv.Atoi(string(text)))
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && !strings.Contains(string(line), "\x00beside\x00"+s.Left+"\x00") {
		check(errSomebodyElse)
	}
	return pid
}

// takeFile writes to the file that a process of the same session passes.
func takeFile(s *scene.Scene, say string) error {
	c := must(net.DialUnix("unix", nil, &net.UnixAddr{Name: s.Left + "/s", Net: "unix"}))
	defer c.Close()
	must(c.Write([]byte(say)))
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	check(err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return errors.Join(err, errors.New("no file was passed"))
	}
	files := must(unix.ParseUnixRights(&messages[0]))
	return write(files[0], "!")
}
