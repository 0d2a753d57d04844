package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/turn"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func TestWarningsOnce(t *testing.T) {
	hear := func(f saidFile, texts ...string) (saidFile, []string) {
		var said []string
		now, fresh := f.hear(turn.Warnings(texts, nil))
		for _, w := range fresh {
			said = append(said, w.GetText())
		}
		return now, said
	}
	f, fresh := hear(saidFile{Daemon: "1"}, "a", "b")
	if !slices.Equal(fresh, []string{"a", "b"}) {
		t.Errorf("at first %q are new", fresh)
	}
	if f, fresh = hear(f, "b", "c"); !slices.Equal(fresh, []string{"c"}) {
		t.Errorf("then %q are new", fresh)
	}
	if f, _ = hear(f, strings.Split(strings.Repeat("x", 2*mostSaid), "")...); len(f.Said) != 4 {
		t.Errorf("%d are remembered", len(f.Said))
	}
	f.Said = make([]string, mostSaid)
	if f, _ = hear(f, "a", "d"); len(f.Said) != mostSaid {
		t.Errorf("%d are remembered", len(f.Said))
	}
}

func TestConcerning(t *testing.T) {
	trust := &tooldv1.Warning{Code: "untrusted", Text: "/w is not trusted"}
	broken := &tooldv1.Warning{Code: "not_in_force", Text: "/w/s.json:1: x"}
	write := &tooldv1.Warning{Code: "wrong", Tool: "Write", Text: "/s.json:4: the rule \"Write(x)\" has no effect"}
	key := &tooldv1.Warning{Code: "wrong", Text: "/s.json:5: \"a\" is not known"}
	unknown := &tooldv1.Warning{Code: "unknown_tool", Tool: "LS", Text: "/s.json:6: the rule \"LS\" is about no tool"}
	for call, want := range map[string][]string{
		"Bash ls": {trust.Text, broken.Text, `There are 3 warnings about something else: "toold settings" shows all.`},
		"Write x": {trust.Text, broken.Text, write.Text, `There are 2 warnings about something else: "toold settings" shows all.`},
		"LS":      {trust.Text, broken.Text, unknown.Text, `There are 2 warnings about something else: "toold settings" shows all.`},
	} {
		if got := concerning(call, []*tooldv1.Warning{trust, broken, write, key, unknown}); !slices.Equal(got, want) {
			t.Errorf("%s: %q", call, got)
		}
	}
	if got := concerning("LS", []*tooldv1.Warning{key}); !slices.Equal(got, []string{`There is 1 warning about something else: "toold settings" shows all.`}) {
		t.Errorf("%q", got)
	}
	if got := concerning("LS", nil); got != nil {
		t.Errorf("%q", got)
	}
}
