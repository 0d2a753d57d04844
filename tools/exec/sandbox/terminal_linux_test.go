package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// onTerminal starts a script on a terminal.
func (s scene) onTerminal(t *testing.T, r *Runner, script string) started {
	t.Helper()
	p := started{out: newSink()}
	var err error
	p.Process, err = r.Start(Command{
		ID: "call", Path: bash, Args: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: s.root,
		Env: append(Environ(os.Environ()), "TERM=xterm"), Stdout: p.out, Policy: s.Policy, Terminal: &Size{Columns: 100, Rows: 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inTiers runs a test in each tier that is available here.
func inTiers(t *testing.T, test func(*testing.T, *Runner, scene)) {
	for _, tier := range []Tier{None, Fast, Full} {
		t.Run(string(tier), func(t *testing.T) {
			s, r := newScene(t, tier), newRunner(t)
			if c, err := r.Confinement(s.Policy); err != nil || c.Tier != tier {
				t.Skipf("confined as %s (%v)", c.Tier, err)
			}
			s.Places = append(s.Places, Place{Path: "/usr", Access: Read})
			test(t, r, s)
		})
	}
}

func TestTerminal(t *testing.T) {
	inTiers(t, func(t *testing.T, r *Runner, s scene) {
		p := s.onTerminal(t, r, `tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; echo direct >/dev/tty; ps -o tty= $$ >/dev/null; echo done`)
		exit := p.Wait()
		out := p.out.String()
		if exit.Code != 0 || !strings.HasPrefix(out, "/dev/pts/") || !strings.HasSuffix(out, "\r\n30 100\r\nall\r\ndirect\r\ndone\r\n") {
			t.Errorf("exit %+v, printed %q", exit, out)
		}
	})
}

// TestTerminalSignals covers what a terminal does by itself: Ctrl-C, a new size, and the hang-up when
// the daemon ends the tree, of a shell that SIGTERM does not end.
func TestTerminalSignals(t *testing.T) {
	handled := make(chan os.Signal, 1) // as in the daemon; unconfined children inherit what is ignored
	signal.Notify(handled, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(handled)
	inTiers(t, func(t *testing.T, r *Runner, s scene) {
		p := s.onTerminal(t, r, `trap 'echo size $(stty size)' WINCH; trap 'echo; echo interrupted' INT; trap 'exit 0' QUIT; echo ready; read line; echo "got $line"; while :; do sleep 0.01; done`)
		p.out.line(t, "ready")
		typed := func(text string) {
			if _, err := p.Terminal().Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		typed("hello\n")
		p.out.line(t, "got hello")
		if err := p.Terminal().Resize(Size{Columns: 40, Rows: 10}); err != nil {
			t.Fatal(err)
		}
		p.out.line(t, "size 10 40")
		typed("\x03")
		p.out.line(t, "interrupted")
		typed("\x1c")
		if exit := p.Wait(); exit.Code != 0 {
			t.Errorf("exit %+v", exit)
		}
		if _, err := p.Terminal().Write([]byte("x")); err == nil {
			t.Error("a closed terminal took what was typed")
		}
		inner := s.onTerminal(t, r, `exec bash --noprofile --norc -i`)
		inner.await(t, waits)
		begun := time.Now()
		inner.Stop()
		if exit := inner.Wait(); exit.Signal == "SIGKILL" || len(exit.Stuck) > 0 {
			t.Errorf("after %v: %+v", time.Since(begun), exit)
		}
	})
}

func waits(term *Terminal) bool {
	reads, polls := term.Waits()
	return reads || polls
}

// await returns when the terminal has come to a state.
func (p started) await(t *testing.T, is func(*Terminal) bool) {
	t.Helper()
	for !is(p.Terminal()) {
		select {
		case <-p.Done():
			t.Fatalf("ended: %q", p.out)
		case <-t.Context().Done():
			t.Fatalf("waiting: %q", p.out)
		case <-time.After(5 * time.Millisecond): // the kernel reports none of this
		}
	}
}

// asking is a program that asks for a hidden line on /dev/tty. With an argument it takes that name and makes itself undumpable.
const asking = `package main

import ("fmt"; "os"; "os/exec"; "syscall"; "unsafe")

func main() {
	if len(os.Args) > 1 {
		const setDumpable, setName = 4, 15
		syscall.AllThreadsSyscall(syscall.SYS_PRCTL, setName, uintptr(unsafe.Pointer(&[]byte(os.Args[1]+"\x00")[0])), 0)
		syscall.AllThreadsSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0)
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil { fmt.Println(err); os.Exit(1) }
	stty := func(mode string) { c := exec.Command("stty", mode); c.Stdin = tty; if err := c.Run(); err != nil { fmt.Println(err); os.Exit(2) } }
	stty("-echo"); defer stty("echo")
	fmt.Fprint(tty, "Password: ")
	var line string
	fmt.Fscanln(tty, &line)
	fmt.Fprintf(tty, "\ngot %q\n", line)
}`

// buildAsking compiles it.
func buildAsking(t *testing.T, to string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(asking), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", to, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestTerminalPrompt(t *testing.T) {
	built := filepath.Join(t.TempDir(), "ask")
	buildAsking(t, built)
	inTiers(t, func(t *testing.T, r *Runner, s scene) {
		place := func(name string) string {
			text, err := os.ReadFile(built)
			err = errors.Join(err, os.WriteFile(filepath.Join(s.base, name), text, 0o755))
			if err != nil {
				t.Fatal(err)
			}
			return filepath.Join(s.base, name)
		}
		outside, inside := place("outside/ask"), place("root/ask")
		s.Places = append(s.Places, Place{Path: filepath.Dir(outside), Access: Read})
		hides := func(term *Terminal) bool { return term.Hidden() && waits(term) }

		p := s.onTerminal(t, r, outside)
		p.await(t, hides)
		prompt, ok := p.Terminal().Prompt()
		if s.Tier == None && os.Geteuid() == 0 { // which may write everywhere
			if ok {
				t.Errorf("%+v is a program that nobody could have written", prompt)
			}
		} else if !ok || prompt.Program != outside {
			t.Errorf("%+v, %v", prompt, ok)
		}
		_, err := p.Terminal().Write([]byte("typed ahead"))
		err = errors.Join(err, p.Terminal().Forget())
		if _, wrote := p.Terminal().Write([]byte("sesame\n")); errors.Join(err, wrote) != nil {
			t.Fatal(err, wrote)
		}
		if exit := p.Wait(); exit.Code != 0 || !strings.HasSuffix(p.out.String(), "Password: \r\ngot \"sesame\"\r\n") {
			t.Errorf("%+v, %q", exit, p.out)
		}

		for name, script := range map[string]string{
			"of the workspace":      inside,
			"in sudo's name":        inside + " sudo",
			"beside another reader": "setsid cat <&0 & " + outside,
		} {
			p := s.onTerminal(t, r, script)
			p.await(t, hides)
			if prompt, ok := p.Terminal().Prompt(); ok && name != "beside another reader" {
				t.Errorf("%s: %+v", name, prompt)
			}
			if name == "beside another reader" {
				p.await(t, func(term *Terminal) bool { _, ok := term.Prompt(); return !ok })
			}
			p.Stop()
			p.Wait()
		}
	})
}
