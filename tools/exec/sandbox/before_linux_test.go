package sandbox

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// reported runs a script in Full and returns what is reported of it, each once: + for what goes, -> for a move. The names are
// relative to the scene; a path that a process hides is "?".
func (s scene) reported(t *testing.T, r *Runner, script string) (lines []string) {
	t.Helper()
	var mu sync.Mutex
	b := &Box{Runner: r, Policy: s.Policy, Before: func(a Alteration) {
		mu.Lock()
		defer mu.Unlock()
		line := strings.TrimPrefix(a.Path, s.base+"/")
		if a.Path == "" {
			line = "?"
		}
		if a.To != "" {
			line += " -> " + strings.TrimPrefix(a.To, s.base+"/")
		} else if a.Goes {
			line = "-" + line
		}
		if a.Swapped {
			line = "both " + line
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}}
	out := newSink()
	p, err := b.Start(Command{
		ID: "call", Path: bash, Args: []string{"bash", "--noprofile", "--norc", "-c", script}, Dir: s.root,
		Env: Environ(os.Environ()), Stdout: io.Discard, Stderr: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit := p.Wait(); exit.Code != 0 {
		t.Errorf("%s: %+v %s", script, exit, out)
	}
	return lines
}

// TestReports: each change is reported with the path that it has on the disk, once the links on the way are followed, and
// nothing that the policy keeps from being written.
func TestReports(t *testing.T) {
	r := newRunner(t)
	if got, err := r.Confinement(Policy{Tier: Full}); err != nil || got.Tier != Full {
		skip(t, fmt.Sprintf("run this where the kernel has Landlock and lets users make namespaces: %v, %v", got, err))
	}
	const python = "python3 -c 'import os,ctypes; libc=ctypes.CDLL(None); %s'"
	for script, want := range map[string]string{
		"echo > file":                                                                         "root/file",
		"cat file protected/file":                                                             "",
		"echo > protected/file || true":                                                       "",
		"mkdir -p a/b; cd a; touch ../file ./b/../c":                                          "root/a root/a/b root/file root/a/c",
		"ln -s .git g; echo > g/x; rm g/x; rm g; mkdir g; echo > g/x":                         "root/g root/.git/x -root/.git/x -root/g root/g/x",
		"ln -s file l; echo > l; ln file h":                                                   "root/l root/file root/h",
		"ln -s /tmp t; echo > t/x; echo > /tmp/y":                                             "root/t tmp/x tmp/y",
		"mv file moved; chmod 600 moved; truncate -s 0 moved":                                 "root/file -> root/moved root/moved",
		"exec 4<file; echo > /dev/fd/4; echo > /proc/self/fd/4":                               "root/file",
		"cd .git; echo > /proc/self/cwd/z; echo > /proc/self/root" + "$PWD/zz":                "root/.git/z root/.git/zz",
		"exec 4<file; echo > //proc//self/fd/4":                                               "root/file",
		"ln -s /proc/self/cwd l; cd .git; echo > ../l/x":                                      "root/l root/.git/x",
		"ln -s /proc/self/fd l; exec 4<file; echo > l/4":                                      "root/l ?",
		"ln -s /proc/self/fd/4 l; exec 4<file; echo > l":                                      "root/l root/file",
		"echo > /dev/../proc/self/cwd/y":                                                      "root/y",
		"ln -s .git g; echo > g/x; rm g; ln -s . g; echo > g/y":                               "root/g root/.git/x -root/g root/y",
		"mkdir d; >d/x; rm -r d; ln -s .git d; echo > d/y":                                    "root/d root/d/x -root/d/x -root/d root/.git/y",
		"mkdir d; >d/x; mv d e; ln -s .git d; echo > d/y; >e/z":                               "root/d root/d/x root/d -> root/e root/.git/y root/e/z",
		"echo > /proc/$$/cwd/file":                                                            "?",
		fmt.Sprintf(python, `f=os.open("file",os.O_RDONLY); os.fchmod(f,0o600); os.utime(f)`): "root/file",
		fmt.Sprintf(python, `libc.renameat2(-100,b"file",-100,b"secret/../.git",2)`):          "",
		fmt.Sprintf(python, `libc.renameat2(-100,b"file",-100,b".git/n",0); open("o","w"); libc.renameat2(-100,b".git/n",-100,b"o",2)`):                                  "root/file -> root/.git/n root/o both root/.git/n -> root/o",
		fmt.Sprintf(python, `how=(ctypes.c_uint64*3)(os.O_WRONLY,0,0); assert libc.syscall(437,-100,b"file",how,24)>0; how[0]=0; libc.syscall(437,-100,b".git",how,24)`): "root/file",
		fmt.Sprintf(python, `d=os.open(".git",os.O_RDONLY); os.mkdir("m",dir_fd=d); os.rmdir("m",dir_fd=d); os.symlink("x","s",dir_fd=d); os.mkfifo("p",dir_fd=d)`):      "root/.git/m -root/.git/m root/.git/s root/.git/p",
	} {
		s := newScene(t, Full)
		got := s.reported(t, r, script)
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n reported %q\n     want %q", script, strings.Join(got, " "), want)
		}
	}
}
