//go:build !no_mcp

package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/mcp"
)

// A confined server talks with the daemon as any other does, touches nothing but what it may, and is gone with its set.
func TestConfined(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.Fast, sandbox.Full} {
		t.Run(string(tier), func(t *testing.T) {
			r := newRig(t)
			outside := t.TempDir()
			entry := npm(t, "filesystem", r.room.Root, filepath.Dir(outside)) // the server itself would let it
			entry.Confined = true
			runner := r.env(nil).Box.Runner
			policy := sandbox.Policy{Tier: tier, Places: []sandbox.Place{
				{Path: r.room.Root, Access: sandbox.Write},
				{Path: filepath.Dir(entry.Args[0]), Access: sandbox.Read},
				{Path: servers(t), Access: sandbox.Read},
				{Path: filepath.Dir(entry.Command), Access: sandbox.Read},
			}}
			if got, err := runner.Confinement(policy); err != nil || got.Tier != tier {
				lacking(t, "a kernel with Landlock that lets users make namespaces")
			}
			set := r.fleet.Set("somebody", mcp.Host{
				Roots: []string{r.room.Root}, Dir: r.room.Root, Environ: os.Environ(), Notice: r.notice,
				Open: func(e mcp.Entry) *sandbox.Box {
					if !e.Confined {
						t.Error("the entry has lost what it says")
					}
					return &sandbox.Box{Runner: runner, Policy: policy}
				},
			})
			defer set.Close()
			r.set.Close()
			r.set = set
			r.serve(entry)
			if s := r.status("filesystem"); s.State != mcp.Ready {
				t.Fatalf("its status is %+v", s)
			}
			for _, test := range []struct{ dir, code string }{{r.room.Root, ""}, {outside, "tool_failed"}} {
				input, _ := json.Marshal(map[string]string{"path": filepath.Join(test.dir, "new.txt"), "content": "new"})
				if result, err := r.call(t.Context(), "mcp__filesystem__write_file", string(input), nil); code(err) != test.code {
					t.Errorf("writing into %s gave %q, %v", test.dir, textOf(result), err)
				}
			}
		})
	}
}

// servers is where make servers has put them.
func servers(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "servers"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
