package checkpoint_test

import (
	"encoding/json"
	"testing"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/tools/fs/workspace"
)

// FuzzDecode: whatever stands in the journal, a row is read or refused, and one that is read can be planned with, written
// and read again. Nothing outside of it is looked for but by absolute paths.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"key":"1-0","id":"a","turn":1,"tool":"Edit","start":"2026-01-02T03:04:05Z","ended":true,"files":[{"real":"L2Y=","before":{"kind":"absent"},"after":{"kind":"regular","mode":420,"size":1,"hash":"0000000000000000000000000000000000000000000000000000000000000000","id":{"dev":1,"ino":2,"born":3},"names":2}}]}`,
		`{"key":"1-0","files":[{"real":"L2Y=","before":{"kind":"link","target":"Lw=="}}],"gaps":[{"real":"/d","why":"it is large"}],"open":[{"Real":"/d","Tree":true}]}`,
		`{"key":"1-0","restored":{"session":"s","calls":[{"session":"s","key":"1-0"}],"paths":["/f"]}}`,
		`{"key":"1-0","ended":true,"restored":{"session":"s","calls":[{"session":"s","key":"1-0"}],"wants":[{"real":"L2Y=","image":{"kind":"absent"}}],"short":["L2Y="]},"gaps":[{"real":"/d","why":"x"}],"files":[{"real":"L2Y=","before":{"kind":"unkept","size":1,"why":"y"},"after":{"kind":"absent"}}]}`,
		`{"key":"1-0","files":[{"real":"Zg==","before":{"kind":"absent"}}]}`, `{"key":""}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		row, err := checkpoint.Decode(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(row)
		if err != nil {
			t.Fatalf("a row that was read cannot be written: %v", err)
		}
		if _, err := checkpoint.Decode(again); err != nil {
			t.Fatalf("a row that was written cannot be read: %v\n%s", err, again)
		}
		history := checkpoint.NewHistory("s", []checkpoint.Past{{Session: "s", Row: row}})
		history.Undone()
		history.Net(nil)
		plan, err := history.Plan(0, nil, func(real string) (workspace.Snapshot, error) {
			if real == "" || real[0] != '/' {
				t.Fatalf("it looks for %q", real)
			}
			return workspace.Snapshot{Kind: workspace.Absent}, nil
		}, func(string) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		plan.Digest()
	})
}
