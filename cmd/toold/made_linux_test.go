package main

// Files that a command has just made count as read. What a file held before the call began is not known by that.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const madeRules = `"Bash(cat *)", "Bash(sh *)", "Bash(mkdir *)", "Bash(tee *)", "Bash(echo *)"`

// editsOf is an edit of the file at path, in which a is to become b.
func editsOf(path string) string {
	return `{"file_path":"` + path + `","old_string":"a","new_string":"b"}`
}

// madeByName are calls in which every file is named.
var madeByName = []tempCall{
	{"Bash", "cat > ROOT/f <<END\na\nEND", ""},
	{"Edit", editsOf("ROOT/f"), ""},
	{"Bash", "echo a | tee g h > i", ""},
	{"Edit", editsOf("ROOT/g"), ""},
	{"Write", `{"file_path":"ROOT/i","content":"b"}`, ""},
	{"Bash", "mkdir -p d/e && echo a > d/e/f && cp -r d c", ""},
	{"Edit", editsOf("ROOT/d/e/f"), ""},
	{"Edit", editsOf("ROOT/c/e/f"), ""},
	{"Bash", "echo a > old", ""},
	{"Edit", editsOf("ROOT/old"), "!has not been read"},
	{"Bash", "mv theirs new && cp old copy", ""},
	{"Edit", editsOf("ROOT/new"), "!has not been read"},
	{"Edit", editsOf("ROOT/copy"), ""},
}

// TestMadeCountsAsRead: the files are those that the commands name.
func TestMadeCountsAsRead(t *testing.T) {
	made(t, ordinary(t), madeByName)
}

// TestMadeCountsAsReadWithoutNamespaces: the same where there is no full tier.
func TestMadeCountsAsReadWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t)
	made(t, ordinary(t), madeByName)
}

// TestMadeUnnamedCountsAsRead: in the full tier those that a program makes without naming them too.
func TestMadeUnnamedCountsAsRead(t *testing.T) {
	made(t, ordinary(t), []tempCall{
		{"Bash", "sh make.sh", ""},
		{"Edit", editsOf("ROOT/byscript"), ""},
		{"Edit", editsOf("ROOT/sub/byscript"), ""},
		{"Edit", editsOf("ROOT/renamed"), ""},
		{"Edit", editsOf("/tmp/byscript"), ""},
		{"Edit", editsOf("ROOT/theirs2"), "!has not been read"},
		{"Edit", editsOf("ROOT/old"), "!has not been read"},
	})
}

func TestMadeCountsAsReadAsNobody(t *testing.T) {
	asNobody(t, "testdata/ordinary", "^TestMade(Unnamed)?CountsAsRead$")
}

func made(t *testing.T, h *house, calls []tempCall) {
	t.Helper()
	nobodyElses(t)
	root := h.room(t, "made", map[string]string{
		"old": "a\n", "theirs": "a\n", "theirs1": "a\n",
		"make.sh": "cd sub && cd .. && echo a > byscript && (cd sub; echo a > byscript) && echo a > byscript.tmp && mv byscript.tmp renamed && echo a > /tmp/byscript && mv theirs1 theirs2 && echo a >> old\n",
	})
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := editing(madeRules)
	h.attach(t, in(root, o)).calls(strings.NewReplacer("ROOT", root), calls)
}
