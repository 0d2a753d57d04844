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
				pass(c, heard, out)
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

// pass writes down what is said, and passes the file.
func pass(c net.Conn, heard io.Writer, out string) {
	said, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return
	}
	fmt.Fprint(heard, said)
	unixConn, ok := c.(*net.UnixConn)
	if !ok || out == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(out, strings.TrimSpace(said), "victim"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _, _ = unixConn.WriteMsgUnix([]byte("!"), unix.UnixRights(int(f.Fd())), nil)
}

func besides(p *probe) {
	f, left, in := p.outside("another session"), p.outside("left running"), p.inside("left running")
	f("connect to a Unix socket of another session", func() error { return p.meet("unix", p.Beside+"/s") })
	f("connect to an abstract Unix socket of another session", func() error { return p.meet("unix", "@"+p.BesideAbstract) })
	f("connect to a TCP listener of another session", func() error {
		return p.meet("tcp", "127.0.0.1:"+string(must(os.ReadFile(p.Beside+"/port"))))
	})
	left("write outside through /proc/PID/root of a process left running", func() error {
		return scribble(proc(p.leftRunning(), "root"+p.file), unix.O_WRONLY)
	})
	left("write outside through /proc/PID/cwd of a process left running", func() error {
		return scribble(proc(p.leftRunning(), "cwd/"+filepath.Base(p.out)+"/victim"), unix.O_WRONLY)
	})
	in("ptrace seize of a process left running", func() error { return p.seize(p.leftRunning()) })
	in("signal a process left running", func() error { return p.did(unix.Kill(p.leftRunning(), 0), "it would reach it") })
	left("write to a file that a process left running passes", p.takeFile)
}

// meet connects, says it, and waits until it was heard.
func (p *probe) meet(network, address string) error {
	c := must(net.Dial(network, address))
	defer c.Close()
	must(c.Write(p.say))
	_, err := io.Copy(io.Discard, c)
	return err
}

// leftRunning is the number of the process that an earlier call has left, if it means that one here.
func (p *probe) leftRunning() int {
	pid := must(strconv.Atoi(string(must(os.ReadFile(p.Left + "/pid")))))
	mustBe(pid, "\x00beside\x00"+p.Left+"\x00")
	return pid
}

// takeFile writes to the file that a process of the same session passes.
func (p *probe) takeFile() error {
	c := must(net.DialUnix("unix", nil, &net.UnixAddr{Name: p.Left + "/s", Net: "unix"}))
	defer c.Close()
	must(c.Write(p.say))
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	check(err)
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return errors.Join(err, errors.New("no file was passed"))
	}
	return write(must(unix.ParseUnixRights(&messages[0]))[0], "!")
}
