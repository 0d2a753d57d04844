package shell

import (
	"fmt"
	"strings"
	"testing"
)

// TestInstances: deny rules see each of them remove /.
func TestInstances(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"for d in / /usr; do rm -rf $d; done", "for d in /usr '/'; do rm -rf \"$d\"; done", "for f in -rf; do for d in /; do timeout 5 rm $f ${d}; done; done",
		"for d in a b /; do [ -d $d ] && sudo rm -rf \"$d\"; done", "set -- /; rm -rf \"$1\"", "set -- -rf /; rm \"$@\"", "a=(/); rm -rf \"${a[@]}\"", "a=(-rf /); rm ${a[*]}",
		"a=(/ x); rm -rf $a", "f() { rm -rf \"$1\"; }; f /", "f() { rm \"$@\"; }; f -rf /", "function f { g \"$1\"; }; g() { rm -rf $1; }; f /; rm -rf /", "x=/; rm -rf $x",
		"for d in /; do sh -c \"rm -rf $d\"; done", "for c in rm; do $c -rf /; done", "for d in '-rf /'; do rm $d; done", "for d in /; do echo $d | xargs rm -rf; rm -rf $d; done",
	} {
		a := Analyze(script)
		if !strings.Contains(fmt.Sprintf("%q", texts(a)), `"rm -rf /"`) {
			t.Errorf("%q lists %q", script, texts(a))
		}
	}
	if got := texts(Analyze("for d in /*; do rm -rf \"$d\"; done")); got[len(got)-1] != "rm -rf /*" {
		t.Errorf("a pattern: %q", got)
	}
}

// TestNoInstances: what only reads, or whose values are not known, is listed once.
func TestNoInstances(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"for d in a b; do cat $d; done": 1, "for d in $x; do rm $d; done": 1, "rm $d; for d in /; do ls; done": 2, "(set -- /); rm $1": 2, "bash -c 'd=/'; rm $d": 3, "d=$(ls); rm $d": 3,
		"for d in a; do rm \\$d '$d'; done": 1,
	} {
		if got := texts(Analyze(script)); len(got) != want {
			t.Errorf("%q lists %q", script, got)
		}
	}
}

func texts(a Analysis) (all []string) {
	for _, c := range a.Commands {
		all = append(all, c.String())
	}
	return all
}

// TestInstancesAreBounded: however many values there are, few commands are added.
func TestInstancesAreBounded(t *testing.T) {
	t.Parallel()
	items := strings.Repeat(" x", 200)
	script := ""
	for i := range 5 {
		script += fmt.Sprintf("for v%d in%s; do ", i, items)
	}
	script += "frob $v0 $v1 $v2 $v3 $v4; " + strings.Repeat("frob $v0; ", 50) + strings.Repeat("done; ", 5)
	if n := len(Analyze(script).Commands); n > 51+maxInstances {
		t.Errorf("%d commands", n)
	}
	again := "f() { f; g; g; g; }; g() { h; h; h; }; h() { f; rm $1; }; f x"
	if n := len(Analyze(again).Commands); n > 20*maxInstances {
		t.Errorf("%d commands", n)
	}
}
