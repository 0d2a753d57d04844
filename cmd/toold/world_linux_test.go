package main

// One world: a script means the same wherever it runs. Scripts that only read are made of programs and of ways to name what
// they read, and run in plain bash, without a sandbox, in the fast tier and in the full one.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// worldFiles are what the scripts read, by their names below the project or, with a slash, anywhere.
var worldFiles = map[string]string{
	"file": "one two\nthree\nfour five six\n", "sub/b.txt": "b\nfile\n", "with a space": "spaced out\n", "data.json": `{"a": [1, 2]}`,
	"script.py": "import sys\nprint(sys.argv[1:])\n", "empty": "",
}

// worldExports are what earlier calls have exported, and FOLDER in them is a folder below /tmp with a copy of two of the files.
const worldExports = `export F=file D=sub S="with a space" LIST="file sub/b.txt" N=2 EMPTY= PATTERN='*.txt' WORD=two T=FOLDER/file TD=FOLDER`

// worldPrograms are scripts with @ for what they read.
var worldPrograms = strings.Split(strings.TrimSpace(`
cat @
head -1 @
head -n $N @
tail -1 @
wc -l @
wc -c < @
sort @
sort -r @ | uniq -c
cut -c1-3 @
sed -n 1p @
sed 's/two/2/' @
awk '{print $1}' @
awk -v w="$WORD" '$2 == w' @
grep -c . @
grep -n "$WORD" @
grep $WORD @ || echo none
rg -n two @
tr a-z A-Z < @
nl @
od -c @ | head -2
xxd @ | head -1
md5sum < @
cmp @ file && echo same
diff @ file >/dev/null; echo $?
stat -c %s @
file -b @
test -f @ && echo a file
[ -s @ ] && echo not empty
ls @
ls -d @
basename @
dirname @
realpath @
echo @
printf '[%s]\n' @
for f in @; do echo "$f: $(wc -l < "$f")"; done
while read -r line; do echo "> $line"; done < @
x=@; cat "$x"
f() { cat "$1"; }; f @
cat @ | head -1
cat <(head -1 @)
tee /dev/null < @
python3 -c 'import sys; print(len(open(sys.argv[1]).read()))' @
env cat @
xargs -n1 echo < @
`), "\n")

// worldNames are ways to name what is read.
var worldNames = strings.Split(strings.TrimSpace(`
file
$F
"$F"
${F}
"${F:-nothing}"
"$D/b.txt"
"$S"
$D/*.txt
"$PWD/file"
$(echo file)
"$(printf %s "$F")"
$T
"$T"
"$TD/sub/b.txt"
FOLDER/file
nothing-here
"$UNSET_IN_ALL"
`), "\n")

// worldScripts are the scripts that are made, and those that are of no kind.
func worldScripts() (scripts []string) {
	for _, program := range worldPrograms {
		for _, name := range worldNames {
			scripts = append(scripts, strings.ReplaceAll(program, "@", name))
		}
	}
	return append(scripts, strings.Split(strings.TrimSpace(`
test -n "$F" && echo set
[ -z "$EMPTY" ] && echo empty
echo $F $D "$S" $N
echo ${F%le} ${#F} ${F/file/other}
echo $PATTERN
ls $PATTERN
cat $LIST
for f in $LIST; do wc -l < $f; done
cd $D && cat b.txt
(cd "$TD" && cat file)
cd "$TD" && ls
find "$D" -name '*.txt'
find "$TD" -type f | sort | wc -l
printenv F
env | grep -c '^F='
export -p | grep -c ' F='
which cat
command -v python3
type -t ls
which python3 node
python3 --version
node --version
git status --short
git log --oneline | wc -l
git config --list --show-origin | wc -l
git diff --stat
jq -c .a data.json
echo $((N + 1))
seq $N
[[ $F == file ]] && echo matches
case $F in file) echo a;; *) echo b;; esac
set -- $LIST; echo $#
read -r first < $F; echo $first
mapfile -t lines < $F; echo ${#lines[@]}
echo "$(<$F)"
cat <<<"$F"
diff <(sort $F) <(sort "$T") && echo same
`), "\n")...)
}

// A world is a project in a home, beside a session in which it is confined and one in which it is not.
type world struct {
	*house
	root, folder string // folder is below /tmp: the machine's own for the shell, the session's for those of the first session
	tiers        map[string]int
	asked, reads int // how many of the scripts that only read were asked about
}

// worldSettings are those of the sessions, by their names.
var worldSettings = map[string]string{
	"confined":   `{"permissions":{"allow":["Bash(touch x)"]}}`,
	"unconfined": `{"sandbox":{"enabled":false},"permissions":{"allow":["Bash(*)"]}}`,
}

func newWorld(t *testing.T) *world {
	h, root, _ := livedIn(t)
	w := &world{house: h, root: root, folder: filepath.Join("/tmp", "toold-world-"+filepath.Base(h.dir)), tiers: map[string]int{}}
	t.Cleanup(func() { _ = os.RemoveAll(w.folder) })
	for name, text := range worldFiles {
		put(t, filepath.Join(root, name), text)
	}
	for name := range worldSettings {
		c := w.session(t, name)
		if name == "confined" {
			c.run("copy", w.named("mkdir -p FOLDER/sub; cp file FOLDER/file; cp sub/b.txt FOLDER/sub/"))
		}
		c.run("export", w.named(worldExports))
	}
	for _, name := range []string{"file", "sub/b.txt"} { // now that the session has its own
		put(t, filepath.Join(w.folder, name), worldFiles[name])
	}
	return w
}

// session attaches to one of the sessions with a stream that has all its time before it.
func (w *world) session(t *testing.T, name string) *talk {
	t.Helper()
	a := in(w.root, &tooldv1.Options{SettingsJson: proto.String(worldSettings[name])})
	a.SessionId = name
	c := w.attach(t, a)
	c.wasAsked()
	return c
}

func (w *world) named(script string) string { return strings.ReplaceAll(script, "FOLDER", w.folder) }

// compare runs a script in plain bash and in a session.
func (w *world) compare(t *testing.T, name, script string) {
	t.Helper()
	marker := filepath.Join(w.root, "x")
	want, exit := w.inShell(t, w.root, w.named(worldExports)+"; "+script)
	made := exists(marker)
	_, _ = os.Remove(marker), os.Remove(filepath.Join(w.folder, "x"))
	c := w.session(t, name)
	r := c.run(script, script)
	tier := strings.TrimPrefix(r.GetConfinement().GetTier().String(), "SANDBOX_TIER_")
	w.tiers[tier]++
	if got, code := raw(t, r); inOrder(got) != inOrder(want) || code != exit || exists(marker) != made {
		t.Errorf("%s\nprints %q, exit code %d, in %s;\nin a shell %q, %d\n%s", script, got, code, tier, want, exit, textIn(r))
	}
	_ = os.Remove(marker)
	if name == "confined" {
		w.reads++
		if why := c.wasAsked(); len(why) > 0 {
			w.asked++
			t.Logf("%s\nasks: %s", script, strings.Join(why, "\n"))
		}
	}
	if strings.Contains(script, "cd ") {
		c.run("back to where "+script, "rm -f x; cd "+w.root)
	}
}

// inOrder sorts the lines of an output: nothing says which of two channels is read first.
func inOrder(text string) string { return strings.Join(slices.Sorted(strings.Lines(text)), "") }

// inAllTiers runs the scripts of a share.
func (w *world) inAllTiers(t *testing.T) {
	for i, script := range worldScripts() {
		if !chosen(i, 24) {
			continue
		}
		script = w.named(script)
		w.compare(t, "unconfined", script)
		for _, more := range []string{"", "; true", "; touch x"} {
			w.compare(t, "confined", script+more)
		}
	}
	t.Logf("%d of %d were asked about", w.asked, w.reads)
}

func TestOneWorld(t *testing.T) {
	w := newWorld(t)
	w.inAllTiers(t)
	if w.tiers["FAST"] == 0 || w.tiers["FULL"] == 0 || w.tiers["NONE"] == 0 {
		t.Errorf("not all tiers were tried: %v", w.tiers)
	}
}

func TestOneWorldAsNobody(t *testing.T) { asNobody(t, "testdata/home", "^TestOneWorld$") }

func TestOneWorldWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	newWorld(t).inAllTiers(t)
}
