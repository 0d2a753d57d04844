package redact_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/toold/toold/tools/text/redact"
)

// FuzzText: no bytes make it panic; a second time changes nothing; valid UTF-8 stays valid and JSON stays JSON; the text does
// not grow beyond what the shortest secret, of 3 bytes, and the longest mark make of it.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		"", pem, jwt, "TOKEN=" + ghp + " " + aws, `{"password": "hunter22", "a\"": "https://u:pass@h"}`, "Authorization: Bearer abcdefgh", "--token hunter22", "\xff[redacted: jwt]\xff=",
		"a-----BEGIN PRIVATE KEY-----\\n" + body, "[redacted: [redacted: value]value-of-mine]", "AIza" + a36 + "-" + aws, "value-of-minevalue-of-mine" + aws, `\"secret\":\"a\\\"b1c2d3e4\"`,
	} {
		f.Add(text)
	}
	r := redact.New([]string{"value-of-mine", "redacted: ", "credential]", "hunter22\xc3\xa4"}, nil)
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Text(text)
		if again := r.Text(once); again != once {
			t.Errorf("%q\n once  %q\n twice %q", text, once, again)
		}
		if utf8.ValidString(text) && !utf8.ValidString(once) {
			t.Errorf("%q is no longer UTF-8: %q", text, once)
		}
		if most := len("[redacted: private key]") * (1 + len(text)/3); len(once) > most {
			t.Errorf("%q grew to %d bytes, beyond %d", text, len(once), most)
		}
		if once != text && !redact.Marked(once) {
			t.Errorf("%q became %q without a mark", text, once)
		}
		if data := []byte(text); json.Valid(data) {
			clean := r.JSON(data)
			if !json.Valid(clean) || string(r.JSON(clean)) != string(clean) {
				t.Errorf("%s became %s", data, clean)
			}
		}
	})
}
