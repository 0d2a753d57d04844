package shell

import (
	"slices"
	"testing"
)

// TestSubscripts: each of them runs `git push` when bash evaluates a name.
func TestSubscripts(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"printf -v 'a[$(git push)]' x", "printf '-va[$(git push)]' x", "test -v 'a[$(git push)]'", "[ -v 'a[`git push`]' ]", "[ x ] || [ ! -v 'a[$(git push)]' ]", "read 'a[$(git push)]'",
		"read -r x 'a[$(git push)]' <<< y", "unset 'a[$(git push)]'", "unset -v \"a[\\$(git push)]\"", "mapfile 'a[$(git push)]'", "wait -p 'a[$(git push)]'", "declare 'a[$(git push)]=1'",
		"let 'a[$(git push)]'", "[[ -v 'a[$(git push)]' ]]", "[[ 'a[$(git push)]' -eq 1 ]]", "echo $(( 'a[$(git push)]' ))", "(( 'a[$(git push)]' ))",
		"timeout 5 printf -v 'a[$(git push)]' x", "export 'a[$(git push)]=1'", "read 'a[$(timeout 5 git push)]'", "read a$'[\\'$(git push)\\']'",
	} {
		checkCarried(t, script, "git push")
	}
}

func TestNoSubscripts(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"printf %s 'a[$(git push)]'", "echo 'a[$(git push)]'", "echo 'a[$(git push)]' | xargs echo", "test -n 'a[$(git push)]'", "[ 'a[$(git push)]' = x ]", "[[ -n 'a[$(git push)]' ]]", "grep -v 'a[$(git push)]' f"} {
		if a := Analyze(script); !a.ReadOnly || slices.ContainsFunc(a.Commands, func(c Command) bool { return c.Name == "git" }) {
			t.Errorf("%q: read-only %v, %d commands", script, a.ReadOnly, len(a.Commands))
		}
	}
}
