# The repositories that every door is tried on, made in the directory that it runs in: main, which has worktrees,
# submodules and other repositories below it, small, which has nothing but itself, and driven, whose settings name files of
# its own.
set -e

# Few files, since there are many copies.
mkdir -p template/hooks template/info
echo '#!/bin/sh' >template/hooks/pre-commit.sample
chmod +x template/hooks/pre-commit.sample
export GIT_TEMPLATE_DIR="$PWD/template"

# first makes a repository with one commit.
first() {
	git init -q "$@"
	for dir; do :; done
	(cd "$dir" && echo one >file && git add file && git commit -qm first)
}

# tool FILE COMMAND makes a program.
tool() {
	printf '#!/bin/sh\n%s\n' "$2" >"$1"
	chmod +x "$1"
}

first lib
first inner
first foo
(cd foo && git submodule --quiet add "$PWD/../inner" inner && git commit -qm submodule)
git init -q --bare remote.git

first main
cd main
mkdir src scripts
echo a >src/a.txt
tool scripts/pre-push :
git add . && git commit -qm second
git config extensions.worktreeConfig true
ln -s ../../scripts/pre-push .git/hooks/pre-push
git remote add origin "$PWD/../remote.git"
git push -qu origin main
git submodule --quiet add "$PWD/../lib" sub
git submodule --quiet add "$PWD/../foo" third_party/foo
git submodule --quiet add "$PWD/../lib" lazy
git submodule --quiet update --init --recursive
git commit -qm submodules
git submodule --quiet deinit -f lazy
git worktree add -q linked
git worktree add -q ../other
git worktree add -q ../outside
first --template= deep/a/b/repo
git init -q --bare bare.git

# What git runs in a directory that a setting names, or would if there were one.
first hooked
(cd hooked && mkdir .githooks && tool .githooks/pre-commit : && git add . && git commit -qm hooks && git config core.hooksPath .githooks)
git -C hooked worktree add -q ../hooked2
first soon
git -C soon config core.hooksPath .githooks

# The same for a bare repository.
git init -q --bare named.git
git -C named.git config core.hooksPath ../barehooks
git -C named.git config include.path ../bare.inc

# Hooks that the repository itself holds, by a link.
first shared
(cd shared && mkdir githooks && tool githooks/pre-commit : && git add . && git commit -qm hooks && rm -r .git/hooks &&
	ln -s ../githooks .git/hooks)

# Settings of one worktree and of a submodule.
git -C hooked config extensions.worktreeConfig true
git -C hooked worktree add -q ../hooked3
git -C hooked3 config --worktree core.hooksPath .otherhooks
git -C sub config alias.hi '!tools/hi'

# The user's own configuration names .githooks and tools/team in every repository of this name.
first global

# A rebase that has stopped.
first rebasing
(cd rebasing && git checkout -qb topic && git commit -q --allow-empty -m a && git commit -q --allow-empty -m b &&
	GIT_SEQUENCE_EDITOR='sed -i "1s/^pick/edit/"' git rebase -qi --keep-empty HEAD~2 2>rebase.log)

cd ..
first small
cd small
mkdir src
echo a >src/a.txt
git add . && git commit -qm second
git init -q --bare ../spare.git
git remote add origin "$PWD/../spare.git"
git push -qu origin main

cd ..
first driven
cd driven
mkdir tools
for name in diff merge greet credentials; do tool tools/$name :; done
for name in clean smudge pager; do tool tools/$name 'exec cat'; done
for name in sign ssh; do tool tools/$name 'exit 1'; done
for name in edit todo; do tool tools/$name 'echo >>"$1"'; done
for name in askpass trailer; do tool tools/$name 'echo x'; done
tool tools/watch 'printf "x\\0/\\0"'
tool tools/conv 'cat "$1"'
tool tools/upload 'exec git upload-pack "$@"'
echo '*.c filter=c diff=c merge=c' >.gitattributes
echo 'int x;' >x.c
printf '[user]\n\tname = B\n' >shared.inc
: >attributes
git add . && git commit -qm second
git checkout -qb side && echo 'int y;' >x.c && git commit -qam side
git checkout -q main && echo 'int z;' >x.c && git commit -qam third
git remote add origin "$PWD/../remote.git"
git config include.path ../shared.inc
git config --add include.path ../soon.inc
git config includeIf.onbranch:main.path ../main.inc
git config core.attributesFile "$PWD/attributes"
git config core.fsmonitor tools/watch
git config filter.c.clean tools/clean
git config filter.c.smudge 'sh tools/smudge %f'
git config diff.c.textconv tools/conv
git config diff.c.command tools/diff
git config merge.c.driver './tools/merge %O %A %B'
git config alias.greet '!f() { tools/greet "$@"; }; f'
git config gpg.program tools/sign
git config core.sshCommand 'tools/ssh -v'
git config core.editor tools/edit
git config sequence.editor "$PWD/tools/todo"
git config credential.helper "$PWD/tools/credentials"
git config core.askPass tools/askpass
git config core.pager tools/pager
git config remote.origin.uploadpack tools/upload
git config trailer.x.cmd tools/trailer
# A driver of the user's that no file has yet.
git config filter.user.clean 'sh ../user.sh'

cd ..
for dir in $(find . -name objects); do
	git --git-dir="$dir/.." -c core.fsmonitor= repack -adq
done
find . -name logs -prune -exec rm -r {} +
rm -r foo inner template
