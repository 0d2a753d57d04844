package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestLeaves(t *testing.T) {
	exported := func(name string) bool { return slices.Contains([]string{"PATH", "HOME", "X"}, name) }
	check := func(scripts string, want bool) {
		for script := range strings.SplitSeq(strings.Trim(scripts, "\n"), "\n") {
			if script = strings.ReplaceAll(script, "¶", "\n"); Leaves(script, exported) != want {
				t.Errorf("%q: got %v", script, !want)
			}
		}
	}
	check(`
touch x
make -j4 2>&1 | tail -5
set -euo pipefail; y=1; go build ./...
for f in *.go; do gofmt -w "$f"; done
(cd sub && make)
y=$(cd sub; pwd); echo "$y"
PATH=/x make
while read -r line; do echo "$line" >> out; done < in
f() { local z=1; rm "$z"; }; f
((i++)); echo $((i + 1)) > out
printf '%s\n' "$X" > out
[[ $X -eq 5 ]] && touch y
exec make
unset y
cat > out <<E¶export X=1¶E
python3 -c 'import os; os.chdir("/")'
`, false)
	check(`
cd /
cd sub && make
pushd x; popd
export y=1
declare -x y
readonly X=1
X=1
PATH=$PATH:/x; make
for X in 1 2; do :; done
read -r X < in
unset X
printf -v X 1
printf $y
: ${X:=1}
((X++))
((X = 1))
((X += 1))
let X=1
set -a; y=1
set -o allexport
set $y
f() { cd /; }; f
source env.sh
. ./env.sh
eval "$y"
"cd" /
\cd /
$y /
command cd /
trap 'cd /' USR1
coproc cat
exec {X}>out
mv ../root ../root2
export
echo 'open
`, true)
}
