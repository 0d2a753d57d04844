package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGitHardening: in a repository with every setting that could make a reading
// git run a program or write, none does under the hardening.
func TestGitHardening(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	dir := t.TempDir()
	mark := filepath.Join(t.TempDir(), "ran")
	home := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
	run := func(env []string, args ...string) {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(home, "init", "-q")
	write("f", "a\n")
	run(home, "add", "f")
	run(home, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	write("evil", "#!/bin/sh\necho ran >>"+mark+"\n")
	for _, key := range []string{"core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand", "core.askPass", "pager.log"} {
		run(home, "config", key, filepath.Join(dir, "evil"))
	}
	run(home, "config", "log.showSignature", "true")
	write(".git/hooks/post-index-change", "#!/bin/sh\necho hook >>"+mark+"\n")
	signed(t, git, dir, home)
	// The same content with another time: git wants to refresh its index.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "f"), later, later); err != nil {
		t.Fatal(err)
	}

	hard := append(slices.Clone(home), GitHardening()...)
	before := indexOf(t, dir)
	_ = os.Remove(mark) // what setting up has run
	for _, line := range []string{
		"status", "diff", "diff --stat", "log -p", "show HEAD", "blame f", "log --format=%h", "branch -vv", "stash list", "ls-files -m", "grep a",
	} {
		if a := Analyze("git " + line); !a.ReadOnly {
			t.Errorf("git %s: %s", line, a.Reason)
		}
		run(hard, strings.Fields(line)...)
		if out, err := os.ReadFile(mark); err == nil {
			t.Fatalf("git %s ran %s", line, out)
		}
	}
	if indexOf(t, dir) != before {
		t.Error("the index was written")
	}
	run(home, "status")
	if _, err := os.ReadFile(mark); err != nil {
		t.Error("the settings do nothing without the hardening, so this test shows nothing")
	}
}

// TestGitHardeningReachesSubmodules does the same to a submodule that no
// .gitmodules names, into which git goes for what is modified there.
func TestGitHardeningReachesSubmodules(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	dir, mark := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	home := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "MARK=" + mark}
	run := func(env []string, script string) string {
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	run(home, `
		git config --global user.name a; git config --global user.email a@b
		git init -q .; git init -q sub
		echo a >sub/f; (cd sub; git add f; git commit -qm 1); git add sub; git commit -qm 1
		printf '#!/bin/sh\necho ran >>%s\n' "$MARK" >evil; chmod +x evil
		cp evil sub/.git/hooks/post-index-change; git -C sub config core.fsmonitor "$PWD/evil"
		touch -d '2 days ago' sub/f`)
	hard := append(slices.Clone(home), GitHardening()...)
	before := indexOf(t, filepath.Join(dir, "sub"))
	_ = os.Remove(mark)
	for _, line := range []string{"status", "diff", "diff-files", "diff-index HEAD"} {
		run(hard, "git "+line)
		if _, err := os.Stat(mark); err == nil || indexOf(t, filepath.Join(dir, "sub")) != before {
			t.Errorf("git %s ran what the submodule names, or wrote its index", line)
		}
	}
	run(home, "echo b >sub/f")
	if out := run(hard, "git status --short"); !strings.Contains(out, " m sub") {
		t.Errorf("git status prints %q", out)
	}
	run(home, "git status")
	if _, err := os.Stat(mark); err != nil {
		t.Error("the settings do nothing without the hardening, so this test shows nothing")
	}
}

// signed puts a commit with a signature on top, which cannot be verified.
func signed(t *testing.T, git, dir string, env []string) {
	t.Helper()
	script := `git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----' |
		git hash-object -t commit -w --stdin | xargs git reset -q --soft`
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "PATH="+filepath.Dir(git)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func indexOf(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestGitKeyRuns(t *testing.T) {
	for setting, want := range map[string]bool{
		"filter.lfs.clean=x": true, "diff.external=x": true, "diff.pdf.textconv=x": true, "diff.x.y.command=x": true, "submodule.a.url=x": false,
		"submodule.a.ignore=all": false, "lfs.extension.x.clean=x": true, "lfs.url=x": false, "diff.pdf.binary=true": false, "user.name=x": false,
		"core.fsmonitor=x": true, "core.fsmonitor=true": true, "core.fsmonitor=false": false, "core.fsmonitor=": false, "core.FsMonitor=x": true,
		"gpg.program=x": true, "gpg.ssh.program=x": true, "core.alternaterefscommand=x": true, "diff.renames=true": false, "DIFF.Pdf.TextConv=x": true, "=": false,
	} {
		key, value, _ := strings.Cut(setting, "=")
		if got := GitKeyRuns(key, value); got != want {
			t.Errorf("%s: %v", setting, got)
		}
	}
	if !GitKeyFetches("remote.origin.promisor") || GitKeyFetches("remote.origin.url") {
		t.Error("only a promisor makes git fetch")
	}
}

func TestGitReadsMore(t *testing.T) {
	for setting, want := range map[string]bool{
		"diff.submodule=diff": true, "diff.submodule=log": false, "status.submodulesummary=true": true, "status.submodulesummary=5": true,
		"status.submodulesummary=false": false, "log.showsignature=": true, "log.showsignature=false": false, "log.diffmerges=remerge": true,
		"log.diffmerges=separate": false, "status.short=true": false,
	} {
		key, value, _ := strings.Cut(setting, "=")
		if got := GitReadsMore(key, value); got != want {
			t.Errorf("%s: %v", setting, got)
		}
	}
}
