package daemon_test

// The token file, as it is made and as it is read.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/daemon"
)

// TestFreshTokens: a daemon makes the file that is not there, for its user alone, and its one token opens.
func TestFreshTokens(t *testing.T) {
	h := prepare(t)
	path := filepath.Join(h.state, "tokens")
	address := h.open(daemon.TCP{Tokens: path})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v; want a file that others cannot read", info, err)
	}
	token, err := daemon.ReadToken(path)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := h.as(address, token).info(t.Context()); err != nil || who.GetPrincipal() != "token:default" {
		t.Errorf("%v, %v", who.GetPrincipal(), err)
	}
	h.stop()
	h.open(daemon.TCP{Tokens: path})
	if again, err := daemon.ReadToken(path); err != nil || again != token {
		t.Errorf("the next daemon made another token (%v)", err)
	}
}

// TestReadToken: what a client takes for its token.
func TestReadToken(t *testing.T) {
	for text, want := range map[string]string{
		strange: strange, "# mine\n\n" + strange + "\n": strange, both: tokenA,
		"":      "holds no token",
		"short": "line 1: it is neither TOKEN nor NAME TOKEN", "a b " + strange: "line 1: it is neither",
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := daemon.ReadToken(path)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) && !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if err := os.Chmod(path, 0o604); err != nil {
			t.Fatal(err)
		}
		if _, err := daemon.ReadToken(path); err == nil {
			t.Errorf("%q is taken from a file that all can read", text)
		}
	}
}

// FuzzTokens: whatever stands in the file, no error repeats a word of it that could be a token, and what is taken is found
// again by its token alone.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{both, "", "#", "a " + strange, strange, "a b c d", "a\x00 " + strange, many(3), "a " + strange + "\r\nb " + tokenA} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		names, err := daemon.ParseTokens(text)
		for line := range strings.Lines(string(text)) {
			for _, word := range strings.Fields(line) {
				if err != nil && len(word) >= 20 && strings.Contains(err.Error(), word) {
					t.Errorf("the error repeats %q: %v", word, err)
				}
			}
		}
		for secret, name := range names {
			if len(secret) < 20 || name == "" || strings.ContainsAny(name, " \t\n:") || !strings.Contains(string(text), name) {
				t.Errorf("%q is called %q", secret, name)
			}
		}
	})
}
