// What calls change without naming it is undone, where the sandbox reports it.

package daemon_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// A tree is every entry below a directory: kind, mode, content or target, and which names are one file.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	names := map[uint64]string{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
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
			if len(data) > 4096 {
				line += fmt.Sprintf(" %d bytes, SHA-256 %x", len(data), sha256.Sum256(data))
			} else {
				line += fmt.Sprintf(" %q", data)
			}
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

// needsFull skips where the sandbox does not report what processes change.
func (h *house) needsFull() {
	h.t.Helper()
	info, err := tooldv1.NewDaemonServiceClient(h.conn).GetInfo(h.t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	if info.GetSandbox() != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		ownspace.Lacks(h.t, "run this where the kernel has Landlock and lets users make namespaces")
	}
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
			h.needsFull()
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
			h.needsFull()
			h.sh(repository)
			known := h.gitState()
			then := tree(t, h.root)
			c := h.join("s", free())
			result := c.bash("change", script)
			if result.GetError() != nil {
				t.Fatal(result)
			}
			want(t, told(result), "")
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

// told returns what a result tells about what is not kept; empty: nothing.
func told(result *tooldv1.ToolResult) string {
	for _, block := range result.GetContent() {
		if text := block.GetText(); strings.HasPrefix(text, "Note: the user cannot undo") {
			return text
		}
	}
	return ""
}

// script writes a script into the root, of which the command line shows nothing.
func (h *house) script(text string) (command string) {
	h.t.Helper()
	h.file("script", text)
	return "sh script"
}

// TestUndoOfMake: what make clean and make change is undone; what git ignores is left out and named where it is gone, and
// kept where the call names it.
func TestUndoOfMake(t *testing.T) {
	h := serve(t)
	h.needsFull()
	h.sh(repository + `; printf 'all:\n\tmkdir -p build && echo new > build/x.o && echo made > made.txt && echo x > src/1.o\nclean:\n\trm -rf build made.txt src/*.o lib\n' > Makefile; echo one > made.txt; echo old > src/1.o`)
	then := tree(t, h.root)
	c := h.join("s", free())
	result := c.bash("make", "make -s")
	want(t, told(result), "")
	h.restore(before("s", 1))
	want(t, strings.Contains(tree(t, h.root), `made.txt -rw-r--r-- "one\n"`), true)
	want(t, strings.Contains(tree(t, h.root), `src/1.o -rw-r--r-- "x\n"`), true) // it is ignored
	h.sh("echo loose > build/x.o; echo old > src/1.o")
	want(t, tree(t, h.root), then)

	result = c.bash("clean", "make -s clean")
	if note := told(result); !strings.Contains(note, "1 not kept") && !strings.Contains(note, "2 not kept") || !strings.Contains(note, "git ignores it") {
		t.Errorf("told %q, want what is ignored and gone", note)
	}
	h.restore(beforeCall("s", "clean"))
	if got := h.sh("cat build/kept lib/l made.txt; ls build/* src/*"); got != "tracked\nlib\none\nbuild/kept\nsrc/1.c\nsrc/2.c\nsrc/3.c\nsrc/link\n" {
		t.Errorf("undone, there is %q", got)
	}

	h.sh("mkdir -p build/deep; echo loose > build/deep/x; echo f > build/f")
	then = tree(t, h.root)
	want(t, told(c.bash("named", h.script("rm -rf $1; echo $2 > /dev/null")+" build other")), "")
	h.restore(beforeCall("s", "named"))
	h.sh("rm script")
	want(t, tree(t, h.root), then)
}

// TestRemovalOfEverything: a directory with all kinds of entries is given back; what cannot be kept is named.
func TestRemovalOfEverything(t *testing.T) {
	h := serve(t)
	h.needsFull()
	h.sh(`mkdir -p all/deep; cd all; echo x > f; ln f deep/hard; ln -s f link; ln -s nowhere dangling; mkfifo pipe; echo s > deep/exec; chmod 4755 deep/exec
		mkdir locked; echo in > locked/in; chmod 500 locked; mkdir empty; chmod 1777 empty; echo secret > .env; head -c 70000000 /dev/zero > large`)
	then := tree(t, filepath.Join(h.root, "all"))
	c := h.join("s", free())
	result := c.bash("remove", h.script("chmod -R u+rwX all; rm -rf all"))
	note := told(result)
	for _, part := range []string{"3 not kept", "/all/.env (by its name it holds credentials)", "/all/large (it has 70000000 bytes", "/all/pipe (it is not a file, a directory or a link)"} {
		if !strings.Contains(note, part) {
			t.Errorf("told %q, want %q in it", note, part)
		}
	}
	h.restore(before("s", 1))
	var left []string
	for line := range strings.Lines(then) {
		if !strings.HasPrefix(line, "pipe ") && !strings.HasPrefix(line, ".env ") && !strings.HasPrefix(line, "large ") {
			left = append(left, line)
		}
	}
	want(t, tree(t, filepath.Join(h.root, "all")), strings.TrimSuffix(strings.Join(left, ""), "\n"))
}

// TestRemovalOfTooMuch: of a removal beyond the limits what was recorded is given back, and the rest is named.
func TestRemovalOfTooMuch(t *testing.T) {
	h := serve(t)
	h.needsFull()
	h.sh(`mkdir a b; touch a/{1..1500} b/{1..1500}; echo first > 0`)
	c := h.join("s", free())
	result := c.bash("remove", h.script("rm 0; rm -rf a; rm -rf b"))
	if note := told(result); !strings.Contains(note, "1 not kept: "+h.real()+"/b (more than 2000 files and directories would have to be kept).") {
		t.Errorf("told %q", note)
	}
	h.restore(before("s", 1))
	if got := h.sh("cat 0; ls a | wc -l; ls b | wc -l"); !strings.HasPrefix(got, "first\n1500\n4") {
		t.Errorf("undone, there is %q", got)
	}
	entries := h.checkpoints("s")
	if !strings.Contains(entries[len(entries)-1], "b not kept: More than 2000 files") {
		t.Errorf("listed %q", entries[len(entries)-1])
	}
}

// real is the root without links.
func (h *house) real() string {
	real, err := filepath.EvalSymlinks(h.root)
	if err != nil {
		h.t.Fatal(err)
	}
	return real
}

// TestPrograms: what editors and archivers do to files is undone.
func TestPrograms(t *testing.T) {
	for name, script := range map[string]string{
		"temporary and rename": "cp f .f.swp; echo more >> .f.swp; mv f f~; mv .f.swp f; rm f~",
		"tar":                  "tar xf archive.tar",
		"patch in place":       "perl -pi -e s/one/two/ f d/g",
		"install":              "install -m 600 f d/g; cp -a d e; ln -sf f d/l",
		"find":                 "find . -name g -exec chmod 600 {} + ; find d -delete",
		"shell":                "exec 3<>f; echo x >&3; : > d/g; echo y >> d/g",
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t)
			h.needsFull()
			h.sh(`mkdir d; echo one > f; echo one > d/g; mkdir new; echo tar > f2; mkdir -p arch/d; echo a > arch/f; echo b > arch/d/g; ln -s x arch/d/l; mkdir arch/n; echo n > arch/n/n; tar cf archive.tar -C arch . ; rm -r arch`)
			command := h.script(script)
			then := tree(t, h.root)
			c := h.join("s", free())
			if result := c.bash("change", command); result.GetError() != nil {
				t.Fatal(result)
			}
			if tree(t, h.root) == then {
				t.Fatal("nothing was changed")
			}
			done := h.restore(before("s", 1))
			if got := tree(t, h.root); got != then {
				t.Errorf("undone, there is\n%s\nwant\n%s\n%v", got, then, done)
			}
		})
	}
}

// TestUndoInALinkedWorktree: HEAD and index of a linked worktree, which lie outside of the root, are put back as well.
func TestUndoInALinkedWorktree(t *testing.T) {
	h := prepare(t)
	main := t.TempDir()
	h.sh(`rmdir "$PWD"; cd ` + main + `; ` + repository + `; git worktree add -q -b linked ` + h.root)
	h.start()
	h.needsFull()
	state := func() string {
		return h.sh("git rev-parse HEAD; git symbolic-ref HEAD; git status --porcelain=v2; git ls-files -s; git for-each-ref")
	}
	known, then := state(), tree(t, h.root)
	c := h.join("s", free())
	if result := c.bash("change", "git checkout -q other && git commit -q --allow-empty -m x"); result.GetError() != nil {
		t.Fatal(result)
	}
	done := h.restore(before("s", 1))
	want(t, tree(t, h.root), then)
	if got := state(); got != known {
		t.Errorf("undone, git has\n%s\nwant\n%s\n%v", got, known, done)
	}
}
