// What calls change without naming it is undone, where the sandbox reports it.

package daemon_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
)

// A tree is every entry below a directory: kind, mode, content or target, and which names are one file.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	names := map[uint64]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if strings.HasPrefix(rel, ".git/objects/") {
			return nil // adding contents does no harm
		}
		line := fmt.Sprintf("%s %v", rel, info.Mode())
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %q", data)
			inode := info.Sys().(*syscall.Stat_t).Ino
			if names[inode] == "" {
				names[inode] = rel
			} else {
				line += " = " + names[inode]
			}
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// sh runs a script in the root, outside of the daemon.
func (h *house) sh(script string) string {
	h.t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = h.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// TestUndoOfWhatIsNotNamed: what a program changes without naming it is put back, byte by byte.
func TestUndoOfWhatIsNotNamed(t *testing.T) {
	const files = `mkdir -p src/deep; for n in 1 2 3; do echo "x $n" > src/deep/$n.c; echo "x" > $n.txt; done; chmod 755 src/deep/1.c; ln -s deep/2.c src/link
		ln 1.txt also.txt; echo a > a; mkdir d; echo in > d/in; ln -s d dlink; mkdir empty; chmod 700 empty; touch old; echo keep > keep`
	for name, script := range map[string]string{
		"the three":        `sh -c 'rm -rf src; mv a b; sed -i s/x/y/ *.txt'`,
		"python":           `import os,shutil; shutil.rmtree("src"); os.rename("a","b"); open("1.txt","r+").write("zz"); os.chmod("keep",0o600); os.rename("d","e"); open("e/in","a").write("more"); os.mkdir("d"); open("d/new","w").write("n")`,
		"mapped":           `import mmap; f=open("keep","r+b"); m=mmap.mmap(f.fileno(),0); m[0:2]=b"KE"; m.flush()`,
		"truncated":        `import os; os.truncate("keep",1); os.symlink("x","s"); os.link("keep","k2"); os.remove("dlink"); os.rmdir("empty"); os.open("n",os.O_CREAT|os.O_WRONLY)`,
		"through a link":   `open("dlink/in","w").write("new"); open("src/link","w").write("new")`,
		"by descriptor":    `import os; f=os.open("keep",os.O_RDONLY); os.fchmod(f,0o640); g=open("/proc/self/fd/%d"%f,"w"); g.write("new"); d=os.open("d",os.O_RDONLY); os.unlink("in",dir_fd=d)`,
		"exchanged":        `import ctypes; l=ctypes.CDLL(None); assert l.renameat2(-100,b"d",-100,b"src",2)==0; assert l.renameat2(-100,b"a",-100,b"dlink",2)==0`,
		"moved and remade": `import os; os.rename("d","moved"); os.symlink("src","d"); open("d/1","w").write("n"); os.unlink("d"); os.mkdir("d"); open("d/in","w").write("other"); os.rename("moved","again")`,
		"its own":          `import os; os.mkdir("own"); [open("own/%d"%i,"w").write("n") for i in range(50)]; os.rename("own","own2"); os.rename("keep","own2/keep"); open("own2/keep","a").write("x")`,
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			h.sh(files)
			then := tree(t, h.root)
			c := h.join("s", free())
			command := script
			if name != "the three" {
				if err := os.WriteFile(filepath.Join(h.root, "script"), []byte(script), 0o644); err != nil {
					t.Fatal(err)
				}
				then = tree(t, h.root)
				command = "python3 script"
			}
			if result := c.bash("change", command); result.GetError() != nil {
				t.Fatal(result)
			}
			after := tree(t, h.root)
			if after == then {
				t.Fatal("nothing was changed")
			}
			done := h.restore(before("s", 1))
			if got := tree(t, h.root); got != then {
				t.Errorf("undone, there is\n%s\nwant\n%s\nchanged to\n%s\nanswer %v", got, then, after, done)
			}
			h.restore(beforeCall("s", done.GetToolUseId()))
			if got := tree(t, h.root); got != after {
				t.Errorf("with the undo undone, there is\n%s\nwant\n%s", got, after)
			}
		})
	}
}

// gitState is what git knows: HEAD, the index by content, references, their logs, and the state of the working tree.
func (h *house) gitState() string {
	return h.sh(`git rev-parse HEAD; git symbolic-ref -q HEAD || true; git ls-files -s; git for-each-ref; cat .git/logs/HEAD; find .git/logs -type f | sort | xargs cat; ls .git; git status --porcelain=v2 --branch`)
}

const repository = `export GIT_CONFIG_GLOBAL=/dev/null; git init -q -b main; git config user.name n; git config user.email e@example.com
	printf 'build/\n*.o\n' > .gitignore; mkdir -p src lib build; for n in 1 2 3; do echo "main $n" > src/$n.c; done; echo tracked > build/kept; ln -s 1.c src/link; echo lib > lib/l; chmod 755 src/2.c
	git add .; git add -f build/kept; git commit -qm one; git checkout -qb other; git rm -q -r lib; echo other > src/1.c; echo other > build/kept; rm src/link; echo file > src/link; chmod 644 src/2.c; mkdir new; echo new > new/file; git add -A; git add -f build/kept
	git commit -qm two; git checkout -q main; git tag t; echo loose > build/x.o; git stash list > /dev/null; echo dirty >> src/3.c; echo staged > staged; git add staged`

// TestUndoOfGit: after the undo of a command of git, HEAD, index, references, logs and files are as before.
func TestUndoOfGit(t *testing.T) {
	for name, script := range map[string]string{
		"checkout":          "git checkout -q other",
		"switch -c":         "git switch -q -c third && git commit -qam dirty",
		"reset":             "git reset -q --hard other",
		"merge":             "git stash -q && git merge -q other",
		"rebase":            "git commit -qam dirty && git rebase -q other",
		"conflict":          "git stash -q && git checkout -q other && echo conflict > src/3.c && git commit -qam c && git checkout -q main && git stash pop -q && git commit -qam d && (git merge -q other || true)",
		"stash":             "git stash -q -u",
		"pack":              "git pack-refs --all && git branch -D other && git tag -d t",
		"branch":            "git branch -m main trunk",
		"clean":             "git clean -fdq && git checkout -q -- .",
		"through a program": `python3 -c 'import subprocess as s; s.check_call(["git","checkout","-q","other"])'`,
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			h.sh(repository)
			known := h.gitState()
			then := tree(t, h.root)
			c := h.join("s", free())
			if result := c.bash("change", script); result.GetError() != nil {
				t.Fatal(result)
			}
			after := tree(t, h.root)
			done := h.restore(before("s", 1))
			if got := tree(t, h.root); got != then {
				t.Errorf("undone, there is\n%s\nwant\n%s\n%v", got, then, done)
			}
			if got := h.gitState(); got != known {
				t.Errorf("undone, git has\n%s\nwant\n%s", got, known)
			}
			request := beforeCall("s", done.GetToolUseId())
			request.Force = true // git has read the files again
			h.restore(request)
			if got := tree(t, h.root); got != after {
				t.Errorf("with the undo undone, there is\n%s\nwant\n%s", got, after)
			}
		})
	}
}
