package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	tokenA  = "AAAA-token-of-alice-AAAA"
	strange = "CCCC-token-of-nobody-CCCC"
	both    = "# who may come\nalice " + tokenA + "\n\n robert\tBBBB-token-of-robert-BBBB\n"
)

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
		got, err := ReadToken(path)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, want) && !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if err := os.Chmod(path, 0o604); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadToken(path); err == nil {
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
		names, err := namedIn(text)
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

// namedIn reads the text of a token file, and gives the names of the words in it that are tokens.
func namedIn(text []byte) (names map[string]string, err error) {
	tokens, err := parseTokens("tokens", text)
	names = map[string]string{}
	for _, word := range strings.Fields(string(text)) {
		for _, t := range tokens {
			if t.hash == sha256.Sum256([]byte(word)) {
				names[word] = t.name
			}
		}
	}
	if err == nil && len(names) != len(tokens) {
		err = errors.New("a token is none of the words")
	}
	return names, err
}

func many(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "name token-of-number-%08d\n", i)
	}
	return lines.String()
}
