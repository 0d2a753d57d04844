package repo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A ground is a folder of real repositories.
type ground struct {
	testing.TB
	dir string
}

// newGround makes one whose root has linked worktrees, submodules two levels deep and bare repositories.
func newGround(t testing.TB) *ground {
	t.Helper()
	g := plainGround(t)
	g.sh(`git -C src/outer submodule --quiet add $PWD/src/inner nested/inner && git -C src/outer commit -qm x && cd root
		git submodule --quiet add $PWD/../src/outer third_party/foo && git submodule --quiet update --init --recursive && git commit -qm sub
		git worktree add -q linked && git worktree add -q ../outside`)
	return g
}

// plainGround makes one with repositories in its root.
func plainGround(t testing.TB) *ground {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("TOOLD_CI") != "" {
			t.Fatal("install git")
		}
		t.Skip("install git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t, dir}
	g.sh(`mkdir home src
		git init -q src/inner && git -C src/inner commit -q --allow-empty -m x
		git init -q src/outer && git -C src/outer commit -q --allow-empty -m x
		git init -q root && cd root && mkdir -p sub/dir && git commit -q --allow-empty -m x
		git init -q --bare bare.git && git init -q deep/a/b/c && git init -q near`)
	return g
}

// sh runs a script in the ground.
func (g *ground) sh(script string) string {
	g.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "HOME="+g.at("home"), "XDG_CONFIG_HOME="+g.at("home/.config"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g *ground) at(name string) string { return filepath.Join(g.dir, name) }

// names returns paths by their names in the ground.
func (g *ground) names(paths []string) (names []string) {
	for _, path := range paths {
		name, _ := filepath.Rel(g.dir, path)
		names = append(names, name)
	}
	return names
}

// TestDiscover: the repository is the one that git itself finds.
func TestDiscover(t *testing.T) {
	g := newGround(t)
	g.sh("ln -s root/near/.git linkedto.git; mkdir plain; mkdir -p slashed; ln -s ../root/near/.git slashed/.git; echo gitdir: ../none >plain/.git")
	for _, name := range []string{
		"root", "root/sub/dir", "root/linked", "outside", "root/third_party/foo", "root/third_party/foo/nested/inner", "root/bare.git", "root/bare.git/refs",
		"root/deep/a/b/c", "root/near", "root/.git", "root/.git/worktrees/linked", "slashed", "home",
	} {
		r, ok := Discover(g.at(name))
		want := g.sh("cd " + name + " && git rev-parse --path-format=absolute --absolute-git-dir --git-common-dir 2>/dev/null || echo")
		if got := strings.TrimSpace(r.Dir + "\n" + r.Common); got != want || ok != (want != "") {
			t.Errorf("%s: found %q, git finds %q", name, got, want)
		}
	}
}

// TestFind: every git directory and every file that leads to one is found, at once and after changes.
// TestDiscoverThroughLink: git follows a .git that is a symbolic link to a file, whose relative path begins where the link is.
func TestDiscoverThroughLink(t *testing.T) {
	g := plainGround(t)
	g.sh(`mkdir -p tree files && echo "gitdir: ../root/near/.git" > files/pointer && ln -s ../files/pointer tree/.git`)
	want := strings.TrimSpace(g.sh(`git -C tree rev-parse --absolute-git-dir`))
	if r, ok := Discover(g.at("tree")); !ok || r.Dir != want {
		t.Errorf("found %+v, git %s", r, want)
	}
	g.sh(`mkdir -p root/near/void/.git`)
	for _, dir := range []string{"root/near/void", "root/near/.git", "root/near/.git/refs"} {
		if top := WorkTree(g.at(dir)); top != g.at("root/near") {
			t.Errorf("the working tree of %s is %q", dir, top)
		}
	}
}

func TestFind(t *testing.T) {
	g, f := newGround(t), new(Finder)
	dirs := []string{
		"root/.git", "root/.git/modules/third_party/foo", "root/.git/modules/third_party/foo/modules/nested/inner", "root/.git/worktrees/linked",
		"root/.git/worktrees/outside", "root/bare.git", "root/deep/a/b/c/.git", "root/near/.git",
	}
	links := []string{"root/linked/.git", "root/third_party/foo/.git", "root/third_party/foo/nested/inner/.git"}
	check := func(after string) {
		t.Helper()
		for range 2 { // also from memory
			found := f.Find(g.at("root"))
			slices.Sort(dirs)
			slices.Sort(links)
			if got := g.names(found.Dirs); !slices.Equal(got, dirs) || found.Partial || len(found.Shared) > 0 {
				t.Errorf("%s: git directories\n%q, want\n%q, %+v", after, got, dirs, found)
			}
			if got := g.names(found.Links); !slices.Equal(got, links) {
				t.Errorf("%s: links %q, want %q", after, got, links)
			}
		}
	}
	check("at first")
	g.sh("git -C root/near worktree add --orphan -b w ../w 2>/dev/null || git -C root worktree add -q w; mkdir -p root/new/x; echo gitdir: ../../bare.git >root/new/x/.git")
	links = append(links, "root/w/.git", "root/new/x/.git")
	dirs = append(dirs, "root/.git/worktrees/w")
	check("after a worktree")
	g.sh("cd root && mkdir -p src/objects src/refs && echo x >src/HEAD && rm -rf deep && mkdir half && echo x >half/HEAD && echo ../bare.git >half/commondir")
	dirs = append(slices.DeleteFunc(dirs, func(d string) bool { return strings.Contains(d, "deep") }), "root/src", "root/half")
	check("after two bare repositories")
	g.sh("mv root/near root/moved")
	dirs = append(slices.DeleteFunc(dirs, func(d string) bool { return strings.Contains(d, "near") }), "root/moved/.git")
	check("after a move")
}

// TestShared: the git directory of a root that is a linked worktree, or the checkout of a submodule, belongs to the root if it
// says so itself.
func TestShared(t *testing.T) {
	g := newGround(t)
	for name, want := range map[string]string{
		"outside": "root/.git", "root/linked": "root/.git", "root/third_party/foo": "root/.git/modules/third_party/foo", "root": "",
	} {
		found := new(Finder).Find(g.at(name))
		if got := strings.Join(g.names(found.Shared), " "); got != want {
			t.Errorf("%s shares %q, want %q", name, got, want)
		}
		if want != "" && !slices.Contains(found.Dirs, g.at(want)) {
			t.Errorf("%s: %s is not among %q", name, want, found.Dirs)
		}
	}
	g.sh("mkdir thief other && echo gitdir: ../root/.git/worktrees/outside >thief/.git && echo gitdir: ../root/.git >other/.git")
	for _, name := range []string{"thief", "other"} {
		if found := new(Finder).Find(g.at(name)); len(found.Shared) > 0 {
			t.Errorf("%s takes %q", name, found.Shared)
		}
	}
}

// TestPartial: a root with very many directories is searched near its top.
func TestPartial(t *testing.T) {
	root := t.TempDir()
	for i := range 10 {
		for j := range 20 {
			if err := os.MkdirAll(filepath.Join(root, "wide", string(rune('a'+i)), string(rune('a'+j))), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "z", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := &Finder{most: 100}
	if found := f.Find(root); !found.Partial || !slices.Contains(found.Dirs, filepath.Join(root, "z", ".git")) {
		t.Errorf("partial %v, git directories %q", found.Partial, found.Dirs)
	}
}

// TestWatch: what a script leaves that makes git run programs is told, with what stood there before; everyday work is not.
func TestWatch(t *testing.T) {
	const evil = `printf '[core]\n\tfsmonitor = ./x\n' >>`
	for _, tt := range []struct{ name, script, want string }{
		{"nothing", ":", ""},
		{"a commit", "cd root && git commit -q --allow-empty -m y && git tag t && git gc -q", ""},
		{"a clone", "cd root && git clone -q ../src/outer deep/clone && git init -q a/b", ""},
		{"a worktree", "cd root && git worktree add -q w2 && git worktree add -q deep/w3 && git worktree remove w2", ""},
		{"a submodule", "cd root/near && git submodule --quiet add $OLDPWD/src/inner 2>/dev/null || git -C root submodule --quiet add $PWD/src/inner x/y", ""},
		{"a remote", "git -C root/deep/a/b/c remote add o x && git -C root/deep/a/b/c config branch.x.remote o", ""},
		{"a move", "mv root/deep root/deeper", ""},
		{"a removal", "rm -rf root/deep root/bare.git", ""},
		{"a hook in a deep repository", "echo x >root/deep/a/b/c/.git/hooks/pre-commit", "root/deep/a/b/c/.git/hooks/pre-commit"},
		{"hooks that lead away", "cd root/deep/a/b/c/.git && rm -r hooks && ln -s /tmp hooks", "root/deep/a/b/c/.git/hooks"},
		{"a setting in a deep repository", evil + "root/deep/a/b/c/.git/config", "root/deep/a/b/c/.git/config without core.fsmonitor"},
		{"a moved one with a setting", "mv root/deep root/deeper; " + evil + "root/deeper/a/b/c/.git/config", "root/deeper/a/b/c/.git/config without core.fsmonitor"},
		{"a common directory", "echo ../src >root/.git/commondir", "root/.git/commondir"},
		{"an attribute", "mkdir -p root/.git/info && echo '* filter=x' >root/.git/info/attributes", "root/.git/info/attributes"},
		{"a bare repository", "mkdir -p root/s/objects root/s/refs && echo x >root/s/HEAD && " + evil + "root/s/config", "root/s/config"},
		{"a new repository", "git init -q root/n && " + evil + "root/n/.git/config", "root/n/.git/config without core.fsmonitor"},
		{"one that includes", "git init -q root/n && git -C root/n config include.path /x", "root/n/.git/config without include.path"},
		{"a broken setting", "git init -q root/n && echo '[x' >root/n/.git/config", "root/n/.git/config"},
		{"a new hook", "git init -q root/n && echo x >root/n/.git/hooks/pre-push", "root/n/.git/hooks/pre-push"},
		{"a module", "git init -q --bare root/.git/modules/bar && " + evil + "root/.git/modules/bar/config", "root/.git/modules/bar/config without core.fsmonitor"},
		{"a file that leads away", "mkdir root/p away && git init -q away && echo gitdir: ../../away/.git >root/p/.git", "root/p/.git"},
		{"a file that leads to another repository", "mkdir root/p && echo gitdir: ../near/.git >root/p/.git", "root/p/.git"},
		{"a .git that leads away", "mkdir root/p && ln -s ../near/.git root/p/.git", "root/p/.git"},
		{"another in its place", "mv root/near root/near2 && git init -q root/near && " + evil + "root/near/.git/config", "root/near/.git/config without core.fsmonitor"},
		{"a worktree's directory", "mkdir -p root/.git/worktrees/z && cd root/.git/worktrees/z && echo x >HEAD && echo ../../../src/outer/.git >commondir", "root/.git/worktrees/z/commondir"},
		{"a hook where a link leads", "cd root/deep/a/b/c && echo x >own/pre-commit", "root/deep/a/b/c/own/pre-commit"},
		{"another link", "cd root/deep/a/b/c/.git && ln -sfT ../../other hooks", "root/deep/a/b/c/.git/hooks"},
		{"a list of a rebase", "mkdir root/.git/rebase-merge && printf 'pick a\nexec evil\nx make test\n' >root/.git/rebase-merge/git-rebase-todo", "root/.git/rebase-merge/git-rebase-todo was"},
		{"a step by a tab", "mkdir root/.git/rebase-merge && printf 'x\tevil\n' >root/.git/rebase-merge/git-rebase-todo", "root/.git/rebase-merge/git-rebase-todo was"},
		{
			"a .git that leads among objects", `mkdir root/p && d=root/.git/objects/ab/modules/e && mkdir -p $d/objects $d/refs && echo x >$d/HEAD &&
				printf '[core]\n\tworktree = %s\n\tfsmonitor = x\n' "$PWD/root/p" >$d/config && echo gitdir: ../.git/objects/ab/modules/e >root/p/.git`, "root/p/.git",
		},
		{"a repository in a folder named objects", "git init -q root/objects/x && " + evil + "root/objects/x/.git/config", "root/objects/x/.git/config without core.fsmonitor"},
		{"a working tree elsewhere", "git -C root/deep/a/b/c config core.worktree ../..", "root/deep/a/b/c/.git/config without core.worktree"},
		{"a named list of a rebase", "mkdir root/.git/rebase-merge && printf 'pick a\nexec make test\n' >root/.git/rebase-merge/git-rebase-todo", ""},
		{"a repository in a git directory", "git init -q root/.git/info/x && " + evil + "root/.git/info/x/.git/config", "root/.git/info/x/.git/config without core.fsmonitor"},
		{
			"some settings of many", `cd root/deep/a/b/c && git remote add o x && git config core.pager evil && git config alias.st status && git config core.filemode true &&
				git config filter.x.clean evil`, "root/deep/a/b/c/.git/config without core.pager filter.x.clean",
		},
		{"an allowed setting", "git -C root/deep/a/b/c config alias.st status", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, f := plainGround(t), new(Finder)
			if strings.Contains(tt.name, "link") {
				g.sh("cd root/deep/a/b/c && mkdir own && rm -r .git/hooks && ln -s ../own .git/hooks")
			}
			guard := f.Guard([]string{g.at("root")}, g.at("root"), g.at("home"))
			absentToo := slices.DeleteFunc(slices.Concat(guard.Firm, guard.Loose), func(path string) bool {
				return exists(path) && slices.Contains(guard.Firm, path) // which is bound
			})
			watch := f.Watch(guard, absentToo, Allowed{Keys: []string{"alias.*"}, Programs: []string{"make test"}})
			g.sh(tt.script)
			early, settledAt := watch.Meanwhile(), watch.Settled()
			var got []string
			for _, c := range watch.Changes() {
				name := g.names([]string{c.Path})[0]
				same := func(o Change) bool { return o.Path == c.Path }
				if at := watch.Concerns(c.Path); !isTodo(c.Path) && !slices.ContainsFunc(settledAt(at), same) {
					t.Errorf("%s: a late look at %q finds no change of %q", tt.script, at, c.Path)
				}
				switch {
				case c.Keys != nil:
					name += " without " + strings.Join(c.Keys, " ")
				case c.Before != nil:
					name += " was"
				}
				got = append(got, name)
			}
			for _, c := range early {
				if name := g.names([]string{c.Path})[0]; !strings.Contains(tt.want, name) {
					t.Errorf("%s: %q is found while it runs, and not at the end", tt.script, name)
				}
				if at := watch.Concerns(c.Path); !slices.ContainsFunc(watch.MeanwhileAt(at), func(o Change) bool { return o.Path == c.Path }) {
					t.Errorf("%s: a look at %q finds no change of %q", tt.script, at, c.Path)
				}
			}
			if joined := strings.Join(got, ", "); joined != tt.want {
				t.Errorf("%s: %q, want %q", tt.script, joined, tt.want)
			}
		})
	}
}

// TestRuns: which writes can make git run programs.
func TestRuns(t *testing.T) {
	g, f := newGround(t), new(Finder)
	g.sh(`cd root && mkdir -p .githooks part && git config core.hooksPath .githooks && git config include.path ../conf/extra && git config alias.x '!sh ./tool.sh' && git config alias.y '!absent/tool a/b' && echo x >tool.sh
		mkdir part/objects part/refs`)
	for name, want := range map[string]bool{
		"root/a.go": false, "root/HEAD": false, "root/objects/x": false, "root/sub/.git": true, "root/.git/config": true, "root/.git/hooks/x": true,
		"root/bare.git/config": true, "root/bare.git/hooks/x": true, "root/bare.git/objects/x": false, "root/part/HEAD": true, "root/part/x": false,
		"root/absent/tool": true, "root/a/b": false, "root/.githooks/pre-commit": true, "root/conf/extra": true, "root/tool.sh": true, "root/sub/tool.sh": false, "root/near/tool.sh": false,
		"root/.git/modules/third_party/foo/config": true, "root/.git/worktrees/linked/commondir": true, "root/linked/tool.sh": false,
	} {
		if got := f.Runs(g.at(name), g.at("home")); (got != "") != want {
			t.Errorf("%s: %q, want %v", name, got, want)
		}
	}
}

// TestManyIncludes: however many files a user's configuration includes, what the repository's own
// includes is guarded, and so is what that file names.
func TestManyIncludes(t *testing.T) {
	g := plainGround(t)
	g.sh(`cd root && git config include.path ../shared && git config --file shared core.attributesFile "$PWD/named"`)
	for _, count := range []int{5, 27, 40, 300} {
		text := ""
		for i := range count {
			text += fmt.Sprintf("[includeIf \"gitdir:~/c%d/\"]\n\tpath = ~/client%d\n", i, i)
		}
		if err := os.WriteFile(g.at("home/.gitconfig"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f := new(Finder)
		guard := g.names(f.Guard([]string{g.at("root")}, g.at("root"), g.at("home")).Firm)
		for _, want := range []string{"root/shared", "root/named"} {
			if !slices.Contains(guard, want) || f.Runs(g.at(want), g.at("home")) == "" {
				t.Errorf("%d includes: %s is not guarded", count, want)
			}
		}
	}
}

func TestOnRemote(t *testing.T) {
	g := newGround(t)
	g.sh("cd src/inner && git branch topic && git branch packed && cd ../.. && git clone -q src/inner clone && cd clone && git pack-refs --all && git update-ref refs/remotes/origin/loose HEAD")
	r, _ := Discover(g.at("clone"))
	own := g.sh("git -C clone branch --show-current")
	for start, want := range map[string]bool{"topic": true, "origin/topic": true, "packed": true, "loose": true, "origin/loose": true, own: false, "none": false, "../x": false, "": false} {
		if got := r.OnRemote(start); got != want {
			t.Errorf("%q: %v, want %v", start, got, want)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	root := b.TempDir()
	for i := range 40 {
		for j := range 50 {
			if err := os.MkdirAll(filepath.Join(root, string(rune('a'+i)), string(rune('a'+j))), 0o755); err != nil {
				b.Fatal(err)
			}
		}
	}
	f := new(Finder)
	b.ReportAllocs()
	for b.Loop() {
		f.Find(root)
	}
}

// TestOpened: the files that a configuration names, through includes and back.
func TestOpened(t *testing.T) {
	home, f := t.TempDir(), new(Finder)
	for name, text := range map[string]string{
		"config": "[include]\n\tpath = ~/more # a comment\n\tpath = \"~/with blank\" ; another\n[includeIf \"gitdir:~/a]b/\"] path = sub/conditional\n" +
			"[core]\n\texcludesFile = /etc/ignore\\\n.d\n\tattributesFile=relative\n\tpager = ~/pager\n#[include]\n; path = ~/not\n[Core]\n\tEXCLUDESFILE = ~/again\n" +
			"[user]\n\tname = ~/name\n[include]path=%(prefix)/x\n[mailmap] file = ~/map\n",
		"more":            "[blame]\n\tignoreRevsFile = ~/revs\n[include]\n\tpath = config\n",
		"sub/conditional": "[include]\npath=deeper\n",
		"sub/deeper":      "[include]\npath=/dev/zero\n",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // also from memory
		var got []string
		for _, name := range f.Opened(home, filepath.Join(home, "config")) {
			got = append(got, strings.Replace(name, home, "~", 1))
		}
		slices.Sort(got)
		want := []string{"/dev/zero", "/etc/ignore.d", "~/again", "~/map", "~/more", "~/revs", "~/sub/conditional", "~/sub/deeper", "~/with blank"}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
