package main

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestLeaving: what leaves the sandbox by sandbox.excludedCommands. A result without a tier was outside.
func TestLeaving(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for i, x := range []struct {
		command string
		leaves  bool
	}{
		{"mktemp -u x.XXXX", true},
		{"echo one; mktemp -u x.XXXX && true", true},
		{"cd sub && mktemp -u x.XXXX", true},
		{"mktemp -u x.XXXX; git status", false},
		{"mktemp -u x.XXXX | cat", false},
		{"mktemp -u x.XXXX; cat a", false},
		{"mktemp -u x.XXXX; echo $(cat a)", false},
		{"mktemp -u x.XXXX; echo two > b", false},
		{"PATH=$PWD:$PATH; mktemp -u x.XXXX", false},
		{"./mktemp -u x.XXXX", false},
		{"./own a", true},
		{"cd sub && ./own a", false},
	} {
		t.Run(x.command, func(t *testing.T) {
			t.Parallel()
			root := h.room(t, fmt.Sprint(i), map[string]string{"a": "x\n", "sub/b": "", "own": "", "sub/own": "", "mktemp": ""})
			options := &tooldv1.Options{SettingsJson: proto.String(`{"sandbox": {"excludedCommands": ["mktemp *", "./own *"]}}`)}
			r := h.attach(t, in(root, options)).run("1", x.command)
			if tier := r.GetConfinement().GetTier(); (tier == tooldv1.SandboxTier_SANDBOX_TIER_NONE) != x.leaves {
				t.Errorf("it ran in %s and ended %s:\n%s", tier, outcome(r), textIn(r))
			}
		})
	}
}
