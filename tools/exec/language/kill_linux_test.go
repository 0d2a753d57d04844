//go:build !no_lsp

package language_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/tools/exec/language"
)

// children are the processes that this one has started and whose command line begins with the program and its arguments.
func children(t *testing.T, command []string) (pids []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		list, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(list)) {
			line, err := os.ReadFile("/proc/" + field + "/cmdline")
			if err == nil && bytes.HasPrefix(line, []byte(strings.Join(command, "\x00")+"\x00")) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// runs reports whether the process is there, and not only waits to be collected.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// When the set is closed, nothing of a server is left, a process that has left its session included.
func TestNothingIsLeft(t *testing.T) {
	s := newSession(t, own("has a child"))
	path := s.put("a.own", "text\n")
	found, err := s.set.Definition(t.Context(), s.at(path, "|text"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	child := found[0].Range.Start.Line - 1
	if !runs(child) {
		t.Fatalf("the child %d is not there", child)
	}
	s.set.Close()
	if runs(child) {
		t.Errorf("the child %d is still there", child)
	}
}

// A server that is killed at any moment holds no call, and the next one works.
func TestKilledAtAnyMoment(t *testing.T) {
	for _, c := range []struct {
		name   string
		server func(*testing.T) language.Server
		file   string
		rounds int
		moment time.Duration // the latest at which it is killed
	}{
		{"own", func(*testing.T) language.Server { return own("good") }, "a.own", 24, 20 * time.Millisecond},
		{"gopls", gopls, "a.go", 6, 800 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := c.server(t)
			s := newSession(t, server)
			s.put("go.mod", goMod)
			path := s.put(c.file, "package m\n\nvar text = 1\n\nvar _ = text\n")
			ask := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
				defer cancel()
				_, err := s.set.Definition(ctx, s.at(path, "= |text"))
				return err
			}
			for range c.rounds {
				moment := time.NewTimer(rand.N(c.moment))
				var killer sync.WaitGroup
				killer.Go(func() {
					<-moment.C
					for _, pid := range children(t, server.Command) {
						_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
					}
				})
				if err := ask(); err != nil && code(err) != "language_server_failed" {
					t.Fatalf("while it was killed: %v", err)
				}
				killer.Wait()
				if err := ask(); err != nil {
					t.Fatalf("after it was killed: %v", err)
				}
			}
			s.set.Close()
			if left := children(t, server.Command); left != nil {
				t.Errorf("processes are left: %v", left)
			}
		})
	}
}

// awaitStopped returns when no thread of the process goes on.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || threads == nil {
			t.Fatalf("%d has gone: %v", pid, err)
		}
		if !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			return err == nil && !bytes.Contains(stat, []byte(") T "))
		}) {
			return
		}
		<-look.C
	}
}

// An edit while its server is dead, or stands still, is told nothing, and in time.
func TestEditWithDeadServer(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(fmt.Sprint(signal), func(t *testing.T) {
			server := gopls(t)
			s := newSession(t, server)
			s.put("go.mod", goMod)
			path := s.put("main.go", goMain)
			s.put("other.go", goOther)
			if _, err := s.set.Diagnose(t.Context(), language.Query{Path: path, Text: os.ReadFile}); err != nil {
				t.Fatal(err)
			}
			w := s.set.Watch(t.Context(), path, []byte(goMain))
			if w == nil {
				t.Fatal("nothing is watched")
			}
			pids := children(t, server.Command)
			if len(pids) != 1 {
				t.Fatalf("%d servers run", len(pids))
			}
			if err := syscall.Kill(pids[0], signal); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(pids[0], syscall.SIGCONT) })
			if signal == syscall.SIGSTOP {
				awaitStopped(t, pids[0])
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if found := w.New(ctx, []byte(strings.Replace(goMain, "dog{}\n\tr", "7\n\tr", 1))); found != nil {
				t.Errorf("%+v", found)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if w := s.set.Watch(ctx, path, []byte("package m\n")); w != nil {
				t.Error("a dead server is watched")
			}
		})
	}
}
