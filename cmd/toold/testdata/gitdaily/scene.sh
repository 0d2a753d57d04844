# The repositories of a day's work, made in the directory that it runs in: one history in a plain clone, in a linked
# worktree whose git directory lies beside it, and in the working tree of a submodule. Each has the branch work checked out.
set -e

mkdir -p template/hooks template/info
echo '#!/bin/sh' >template/hooks/pre-commit.sample
chmod +x template/hooks/pre-commit.sample
export GIT_TEMPLATE_DIR="$PWD/template"

# commit FILE TEXT MESSAGE
commit() {
	mkdir -p "$(dirname "$1")"
	echo "$2" >"$1"
	git add "$1"
	git commit -qm "$3"
}

git init -q base
cd base
commit file one first
commit src/a.txt a second
git branch trunk
commit src/b.txt b third
git branch work
git checkout -qb side
commit side.txt s 'on the side'
git checkout -qb clash trunk
commit file other 'in the way'
git checkout -q trunk
commit trunk.txt t 'on the trunk'
git checkout -q work
commit file mine fourth
git checkout -q main
cd ..

git clone -q base clone
(cd clone && for b in work side clash trunk; do git branch -q --no-track $b origin/$b; done && git checkout -q work)

git -C base worktree add -q ../tree work

git init -q super
(cd super && git submodule --quiet add "$PWD/../base" third_party/foo && git commit -qm submodule && cd third_party/foo &&
	for b in work side clash trunk; do git branch -q --no-track $b origin/$b; done && git checkout -q work)

mkdir extra
git init -q extra/lib
(cd extra/lib && commit lib x first)
git clone -q --bare base extra/hub.git
