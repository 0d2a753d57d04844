package main

import (
	"slices"
	"strings"
	"testing"
)

func TestWarningsOnce(t *testing.T) {
	f, fresh := saidFile{Daemon: "1"}.hear([]string{"a", "b"})
	if !slices.Equal(fresh, []string{"a", "b"}) {
		t.Errorf("at first %q are new", fresh)
	}
	if f, fresh = f.hear([]string{"b", "c"}); !slices.Equal(fresh, []string{"c"}) {
		t.Errorf("then %q are new", fresh)
	}
	if f, _ = f.hear(strings.Split(strings.Repeat("x", 2*mostSaid), "")); len(f.Said) != 4 {
		t.Errorf("%d are remembered", len(f.Said))
	}
	f.Said = make([]string, mostSaid)
	if f, _ = f.hear([]string{"a", "d"}); len(f.Said) != mostSaid {
		t.Errorf("%d are remembered", len(f.Said))
	}
}

func TestConcerning(t *testing.T) {
	trust, broken := "/w is not trusted: nothing counts. Look and run: toold trust /w", "/w/s.json:1: x. Nothing of it is in force until that is mended."
	write, key, stranger := `/s.json:4: the rule "Write(x)" has no effect; Edit(x) is probably meant`, `/s.json:5: "a" is not known`, `/s.json:6: the rule "LS" is about no tool`
	for call, want := range map[string][]string{
		"Bash ls": {trust, broken, `There are 3 warnings about something else: "toold settings" shows all.`},
		"Write x": {trust, broken, write, `There are 2 warnings about something else: "toold settings" shows all.`},
		"Edit x":  {trust, broken, write, `There are 2 warnings about something else: "toold settings" shows all.`},
		"LS":      {trust, broken, stranger, `There are 2 warnings about something else: "toold settings" shows all.`},
	} {
		if got := concerning(call, []string{trust, broken, write, key, stranger}); !slices.Equal(got, want) {
			t.Errorf("%s: %q", call, got)
		}
	}
	if got := concerning("LS", []string{key}); !slices.Equal(got, []string{`There is 1 warning about something else: "toold settings" shows all.`}) {
		t.Errorf("%q", got)
	}
	if got := concerning("LS", nil); got != nil {
		t.Errorf("%q", got)
	}
}
