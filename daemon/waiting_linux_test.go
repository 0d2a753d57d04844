// Shells that wait for a call: which calls they serve, and that none is older than what its call is judged by.

package daemon_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/exec/sandbox"
)

// waiting returns how many shells wait.
func (h *house) waiting() uint32 {
	h.t.Helper()
	info, err := h.daemon().GetInfo(context.Background(), &tooldv1.GetInfoRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	return info.GetWaitingShells()
}

// shells is a conversation whose commands show whether a shell that waited runs them.
type shells struct {
	*conversation
	h     *house
	calls int
}

// run returns what a command prints, and whether a shell ran it that had waited. more is added to it.
func (s *shells) run(command string, more ...string) (printed string, waited bool) {
	s.t.Helper()
	s.calls++
	id := fmt.Sprint("c", s.calls)
	s.use(id, "Bash", fmt.Sprintf(`{"command":%q}`, command+"\necho; echo $"+sandbox.MarkerName+strings.Join(more, "")))
	s.endTurn()
	from, ended := len(s.events), false
	for !ended {
		event := s.until("")
		if q := event.GetQuestion(); q != nil {
			s.reply(q, tooldv1.Decision_DECISION_ALLOW)
		}
		ended = event.GetTurnEnded() != nil
	}
	result := resultsOf(s.events[from:])[id]
	if result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
		s.t.Fatalf("%s: %v", command, result)
	}
	lines := strings.Split(strings.TrimSpace(result.GetStructured().GetFields()["stdout"].GetStringValue()), "\n")
	printed = strings.Join(lines[:len(lines)-1], "\n") + result.GetStructured().GetFields()["stderr"].GetStringValue()
	return strings.TrimSpace(printed), strings.Contains(lines[len(lines)-1], ".early.")
}

// warm runs a command, and returns when a shell waits for another like it.
func (s *shells) warm(command string) {
	s.t.Helper()
	before := s.h.waiting()
	s.run(command)
	s.h.await(func() bool { return s.h.waiting() > before })
}

const (
	reading = "printf ''"
	writing = ": > made"
)

// TestWaitingShells: a call gets the shell that waits for such a call, and never one that was started before something changed that
// its call is judged by.
func TestWaitingShells(t *testing.T) {
	for name, tt := range map[string]struct {
		command string // the shell that waits was started for this one
		change  func(s *shells)
		then    string // instead of the command
		prints  string
		serves  bool
	}{
		"nothing changed":          {command: reading, serves: true},
		"nothing changed, writing": {command: writing, serves: true},
		"a mask that a call has set": {command: reading, change: func(s *shells) {
			s.run("umask 0; umask")
			for s.h.waiting() == 0 { // another is on its way
				runtime.Gosched()
			}
		}, then: "umask", prints: "0022", serves: true},
		"another directory":    {command: reading, change: func(s *shells) { s.run("mkdir d; cd d") }, then: "printf ${PWD##*/}", prints: "d"},
		"an exported variable": {command: reading, change: func(s *shells) { s.run(": > made; export ADDED=1") }, then: "printf $ADDED", prints: "1"},
		"another's command":    {command: reading, then: writing},
		"settings that hide a file": {command: writing, change: func(s *shells) {
			s.h.configure(fmt.Sprintf(`{"sandbox":{"filesystem":{"denyRead":[%q]}}}`, s.h.file("secret", "text")))
		}, then: ": > made; cat s[e]cret", prints: "cat: secret: Permission denied"},
		"a hidden file that was absent": {command: writing, change: func(s *shells) { s.h.file("absent", "text") }, then: ": > made; cat a[b]sent", prints: "cat: absent: Permission denied"},
		"an opened host": {command: writing, change: func(s *shells) {
			s.h.configure(`{"permissions":{"allow":["WebFetch(domain:example.com)"]}}`)
		}},
		"a repository": {command: writing, change: func(s *shells) {
			s.h.file(".git/HEAD", "ref: refs/heads/main\n")
			s.h.file(".git/config", "")
		}},
		"a protected file": {command: writing, change: func(s *shells) { s.h.file(".envrc", "") }},
		"a protected file that was replaced": {command: writing, change: func(s *shells) {
			if err := os.Rename(s.h.file("new", ""), filepath.Join(s.h.root, ".bashrc")); err != nil {
				s.t.Fatal(err)
			}
		}},
		"another directory in the place of the root": {command: reading, change: func(s *shells) {
			if err := os.Rename(s.h.root, s.h.root+"-old"); err != nil {
				s.t.Fatal(err)
			}
			s.h.file("there", "")
		}, then: "printf *", prints: "there"},
		"trust": {command: writing, change: func(s *shells) {
			s.h.file(".toold/settings.json", `{"permissions":{"allow":["WebFetch(domain:example.com)"]}}`)
			s.warm(writing)
			s.conversation = s.h.join("s", free(&tooldv1.Options{Trusted: proto.Bool(true)}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := prepare(t)
			h.configure(fmt.Sprintf(`{"sandbox":{"filesystem":{"denyRead":[%q]}}}`, filepath.Join(h.root, "absent")))
			h.file(".bashrc", "")
			h.start()
			h.needsFull()
			s := &shells{conversation: h.join("s", free()), h: h}
			s.warm(tt.command)
			if tt.change != nil {
				tt.change(s)
			}
			if h.waiting() == 0 {
				t.Fatal("no shell waits")
			}
			if printed, waited := s.run(cmp.Or(tt.then, tt.command)); waited != tt.serves || printed != tt.prints {
				t.Errorf("printed %q, by a shell that had waited: %v", printed, waited)
			}
		})
	}
}

// TestWaitingShellIsTheSame: a script finds nothing else in a shell that had waited than in a new one. Both are confined alike.
func TestWaitingShellIsTheSame(t *testing.T) {
	for _, script := range []string{
		`printf '<%s>' "$0" $# $- $SHLVL $LINENO "${BASH_ENV-unset}" "${!BASH_E@}" "$*" $? "${!-unset}"`,
		"nosuch\nnosuch2", "echo $((1/0))", "umask; ulimit -a; shopt; set -o", "trap; jobs; alias; hash; true", "f() { caller 0; }; f",
		`for fd in 0 1 2 3 4 5; do [ -e /dev/fd/$fd ] && echo $fd; done`, "(exit 3); echo $?", `cat; printf '%s|' "${BASH_LINENO[@]}" "${FUNCNAME-none}"`,
		"printf $PPID; printf $BASH_SUBSHELL; pwd -P; printf $PWD", "sleep 0 & wait; echo $?", "export -p | grep -v " + sandbox.MarkerName,
	} {
		h := serve(t)
		s := &shells{conversation: h.join("s", free()), h: h}
		fresh, waited := s.run(script, " # top")
		if waited {
			t.Fatal("a script that may look at processes got a shell that had waited")
		}
		s.warm(script)
		if got, waited := s.run(script, " # t0p"); !waited || got != fresh {
			t.Errorf("%s: %q instead of %q, by a shell that had waited: %v", script, got, fresh, waited)
		}
	}
}

// TestWaitingShellOfADeniedCall: a call that may no longer run leaves the shell that waits for it alone.
func TestWaitingShellOfADeniedCall(t *testing.T) {
	h := serve(t)
	s := &shells{conversation: h.join("s", free()), h: h}
	s.warm(writing)
	before := h.waiting()
	c := h.join("s", &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_PLAN.Enum()})
	c.use("denied", "Bash", fmt.Sprintf(`{"command":%q}`, writing))
	c.endTurn()
	if got := c.results()["denied"]; got.GetOutcome() != tooldv1.Outcome_OUTCOME_DENIED || h.waiting() != before {
		t.Errorf("%v, and %d shells wait", got, h.waiting())
	}
}

// TestWaitingShellsEnd: none outlives a daemon that is killed.
func TestWaitingShellsEnd(t *testing.T) {
	h := prepare(t)
	kill := h.spawn()
	s := &shells{conversation: h.join("s", free()), h: h}
	for _, command := range []string{reading, writing} {
		s.warm(command)
	}
	text := "PWD=" + h.root
	if len(processes(t, text)) == 0 {
		t.Error("no shell waits there")
	}
	kill()
	h.await(func() bool { return len(processes(t, text)) == 0 })
}
