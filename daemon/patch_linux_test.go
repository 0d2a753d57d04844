package daemon_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

func patchInput(parts string) string {
	input, _ := json.Marshal(map[string]string{"patch": "*** Begin Patch\n" + parts + "\n*** End Patch"})
	return string(input)
}

// TestPatchIsJudgedByEveryName: a rule, an "if" of a hook and the roots are about each file of a patch, and about both names of one
// that is moved. One that is denied leaves all files as they are.
func TestPatchIsJudgedByEveryName(t *testing.T) {
	h := prepare(t).outside()
	settings := `{"permissions":{"deny":["Edit(denied.txt)","Read(secret.txt)"],"allow":["Edit(./**)"]},
		"hooks":{"PreToolUse":[{"matcher":"ApplyPatch","hooks":[{"type":"command","if":"Edit(hooked.txt)","command":"echo 'not this one' >&2; exit 2"}]}]}}`
	if err := os.WriteFile(h.settings, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	for _, name := range []string{"a.txt", "denied.txt", "secret.txt", "hooked.txt"} {
		h.file(name, "x\n")
	}
	then := tree(t, h.root)
	c := h.join("s", &tooldv1.Options{PermissionMode: tooldv1.PermissionMode_PERMISSION_MODE_DONT_ASK.Enum()})
	for id, use := range map[string]struct{ parts, told string }{
		"to":      {"*** Update File: a.txt\n*** Move to: sub/denied.txt", "DENIED rule_denied"},
		"from":    {"*** Update File: denied.txt\n*** Move to: b.txt", "DENIED rule_denied"},
		"delete":  {"*** Add File: new.txt\n+x\n*** Delete File: denied.txt", "DENIED rule_denied"},
		"secret":  {"*** Update File: a.txt\n@@\n-x\n+y\n*** Update File: secret.txt\n@@\n-x\n+y", "DENIED rule_denied"},
		"hook":    {"*** Update File: a.txt\n*** Move to: hooked2.txt\n*** Update File: hooked.txt\n@@\n-x\n+y", "DENIED hook_denied"},
		"outside": {"*** Update File: a.txt\n*** Move to: " + t.TempDir() + "/b.txt", "DENIED mode_denied"},
	} {
		c.use(id, "ApplyPatch", patchInput(use.parts))
		if told := tell(c.until(id + " DENIED")); !strings.HasPrefix(told, id+" "+use.told) {
			t.Errorf("%s: %s, want %s", id, told, use.told)
		}
	}
	if now := tree(t, h.root); now != then {
		t.Errorf("the files are\n%s\nwant\n%s", now, then)
	}
}

// TestPatchIsUndone: a patch is one checkpoint, with the files that it has moved, deleted and added.
func TestPatchIsUndone(t *testing.T) {
	h := serve(t)
	h.file("a.txt", "x\n")
	h.file("b.txt", "b\n")
	then := tree(t, h.root)
	c := h.join("s", free())
	c.use("p", "ApplyPatch", patchInput("*** Update File: a.txt\n*** Move to: sub/c.txt\n@@\n-x\n+y\n*** Delete File: b.txt\n*** Add File: d.txt\n+d"))
	c.endTurn()
	c.until("turn 1 ended")
	if now := tree(t, h.root); now == then || strings.Contains(now, "a.txt") {
		t.Fatalf("the files are\n%s", now)
	}
	done := h.restore(before("s", 1))
	if now := tree(t, h.root); now != then {
		t.Errorf("undone, there is\n%s\nwant\n%s\n%v", now, then, done)
	}
}
