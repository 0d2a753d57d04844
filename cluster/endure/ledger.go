//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
)

// A ledger counts the effects of calls. A command connects, sends the id of its call, and reads a line.
type ledger struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	effects map[string]int
}

func openLedger() (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &ledger{listener: listener, effects: map[string]int{}}
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
	l.mu.Lock()
	l.effects[strings.TrimSpace(line)]++
	l.mu.Unlock()
	fmt.Fprintln(conn, "noted")
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
