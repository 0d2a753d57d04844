//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// A ledger counts the effects of calls. A command connects, sends the id of its call, and reads a line.
type ledger struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex
	effects  map[string]int
	running  map[string]map[string]bool // the ids of calls whose commands run, by session
	overlaps []string
}

func openLedger() (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &ledger{listener: listener, effects: map[string]int{}, running: map[string]map[string]bool{}}
	l.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.serving.Go(func() { l.serve(conn) })
		}
	})
	return l, nil
}

func (l *ledger) serve(conn net.Conn) {
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return
	}
	id := strings.TrimSpace(line)
	l.begins(id)
	defer l.ends(id)
	fmt.Fprintln(conn, "noted")
	_, _ = io.Copy(io.Discard, conn) // until the command and all that it has started have ended
}

// session returns the session of a call.
func session(id string) string {
	name, _, _ := strings.Cut(id, "-")
	return name
}

// grace is how long the ledger may take to notice that a command has ended.
const grace = 500 * time.Millisecond

// begins notes a command, and those of its session that still run after the grace.
func (l *ledger) begins(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[id]++
	others := l.running[session(id)]
	if others == nil {
		others = map[string]bool{}
		l.running[session(id)] = others
	}
	for other := range others {
		time.AfterFunc(grace, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if others[other] {
				l.overlaps = append(l.overlaps, id+" began while "+other+" was running")
			}
		})
	}
	others[id] = true
}

func (l *ledger) ends(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running[session(id)], id)
}

// overlapping describes the calls that began while another one of their session was running.
func (l *ledger) overlapping() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overlaps
}

// command is a bash command that has one effect for a call, and then takes so many seconds.
func (l *ledger) command(id string, seconds float64) string {
	return fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; echo %s >&3; read -r answer <&3; sleep %.2f; echo $answer", l.listener.Addr().(*net.TCPAddr).Port, id, seconds)
}

func (l *ledger) effectsOf(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects[id]
}

func (l *ledger) twice() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]int{}
	for id, n := range l.effects {
		if n > 1 {
			found[id] = n
		}
	}
	return found
}

func (l *ledger) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.effects {
		n += one
	}
	return n
}

func (l *ledger) close() {
	_ = l.listener.Close()
	l.serving.Wait()
}
