package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
)

func newToken(t *testing.T, name string) (token, line string) {
	t.Helper()
	token, line, err := NewToken(name)
	if err != nil {
		t.Fatal(err)
	}
	return token, line
}

// TestWrongLines: a line that cannot be used lets in no user, is reported once, and locks out no other user.
func TestWrongLines(t *testing.T) {
	anna, annas := newToken(t, "anna")
	ben, bens := newToken(t, "ben")
	for name, c := range map[string]struct{ line, why string }{
		"a token instead of its hash": {"ben " + ben + "\n", "line 2: the second word is not a SHA-256"},
		"one word":                    {"ben\n", "line 2: it has 1 words"},
		"an empty name":               {strings.TrimPrefix(bens, "ben"), "line 2: it has 1 words"},
		"a wrong name":                {strings.Replace(bens, "ben", "b/n", 1), "line 2: a name is 1 to 64 letters"},
		"another user's token":        {strings.Replace(annas, "anna", "ben", 1), "line 2: the token stands in an earlier line too"},
		"a longer hash":               {strings.TrimSpace(bens) + "00\n", "line 2: the second word is not a SHA-256"},
	} {
		file, reports := filepath.Join(t.TempDir(), "tokens"), []string(nil)
		if err := os.WriteFile(file, []byte(annas+c.line), 0o600); err != nil {
			t.Fatal(err)
		}
		users, err := OpenUsers(file, func(err error) { reports = append(reports, err.Error()) })
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the file is read again each time, since it is new
			who, err := users.Authenticate(t.Context(), metadata.Pairs("authorization", "Bearer "+anna))
			if err != nil || who != "token:anna" {
				t.Errorf("%s: %q, %v", name, who, err)
			}
			if who, err := users.Authenticate(t.Context(), metadata.Pairs("authorization", "Bearer "+ben)); err == nil {
				t.Errorf("%s: %q", name, who)
			}
		}
		if len(reports) != 1 || !strings.Contains(reports[0], c.why) || strings.Contains(reports[0], ben) {
			t.Errorf("%s: %q, want one with %q", name, reports, c.why)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, err := users.Authenticate(t.Context(), metadata.Pairs("authorization", "Bearer "+anna)); err == nil || len(reports) != 2 || !strings.Contains(reports[1], "no such file") {
			t.Errorf("%s: without the file: %v, %q", name, err, reports)
		}
	}
	for _, name := range []string{"", " ", "a b", "b/n", strings.Repeat("x", 65), "x\ny"} {
		if _, line, err := NewToken(name); err == nil || line != "" || !strings.Contains(err.Error(), "1 to 64 letters") {
			t.Errorf("%q: %q, %v", name, line, err)
		}
	}
}
