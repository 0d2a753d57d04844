package redact_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/toold/toold/tools/text/redact"
)

// Made up: no text here has ever opened anything. They are put together so that nothing that looks for secrets finds them.
var (
	a36  = strings.Repeat("a1B2c3", 6)
	a40  = strings.Repeat("Zx9", 13) + "Q"
	hex  = strings.Repeat("0123456789abcdef", 4)
	aws  = "AK" + "IAIOSFODNN7EXAMPLE"
	ghp  = "gh" + "p_" + a36
	jwt  = "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	body = strings.Repeat("MIIEpAIBAAKCAQEA7bq2kVdW1Qm0zq6kq3Qy9X8u5b4n3m2l1k0j9h8g7f6d5s4A\n", 3)
	pem  = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + body + "abcdEFG=\n-----END RSA PRIVATE " + "KEY-----"
)

// TestSecrets: what is to be found, between double braces.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, text string }{
		{"aws key", "id {{" + aws + "}} used"},
		{"aws key", "({{AS" + "IAIOSFODNN7EXAMPLE}})"},
		{"credential", "aws_secret_access_key = {{wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY7}}"},
		{"credential", "AWS_SECRET_ACCESS_KEY={{/JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}}\n"},
		{"credential", `"SecretAccessKey": "{{wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY}}",`},
		{"github token", "{{" + ghp + "}}"},
		{"github token", "x: {{gh" + "s_" + a36 + "}}, y"},
		{"github token", "{{github" + "_pat_" + a36 + "_" + a36 + "}}."},
		{"github token", "GITHUB_TOKEN={{" + ghp + "}}"},
		{"gitlab token", "{{gl" + "pat-abcDEF-123_456ghiJKL}}"},
		{"slack token", "`{{xox" + "b-123456789012-abcdefABCDEF}}`"},
		{"google key", "key={{AI" + "za" + a36[:35] + "}}&q=1"},
		{"stripe key", "{{sk_" + "live_" + a36 + "}}"},
		{"openai key", "{{sk-" + a40 + "}}"},
		{"openai key", "{{sk-" + "proj-abc_DEF-123456789012}}"},
		{"anthropic key", "ANTHROPIC_API_KEY={{sk-" + "ant-api03-" + a36 + "}}"},
		{"npm token", "//registry.npmjs.org/:_authToken={{np" + "m_" + a36 + "}}"},
		{"pypi token", "password = {{py" + "pi-AgEIcHlwaS5vcmc" + a36 + "}}"},
		{"token", "{{h" + "f_" + a36 + "}}"},
		{"token", "{{dop" + "_v1_" + hex + "}}"},
		{"token", "{{S" + "G." + a36[:22] + "." + a36 + a36 + "}}"},
		{"jwt", "token {{" + jwt + "}}."},
		{"jwt", "got {{" + jwt + "}}\n"},
		{"private key", "{{" + pem + "}}\n"},
		{"private key", strings.ReplaceAll("key: \"{{"+pem+"}}\\n\"", "\n", `\n`)},
		{"private key", "{{-----BEGIN RSA PRIVATE " + "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + strings.TrimSpace(body) + "}}\n... cut"},
		{"private key", "  {{-----BEGIN OPENSSH PRIVATE " + "KEY-----\n  " + strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n  ") + "\n  -----END OPENSSH PRIVATE " + "KEY-----}}\nnext"},
		{"authorization", "Authorization: Bearer {{abcdefghijkl}}"},
		{"authorization", "curl -H 'authorization: basic {{dXNlcjpwYXNz}}' https://x.test"},
		{"authorization", `{"Authorization": "token {{abcdefgh}}"}`},
		{"authorization", `\"Proxy-Authorization\": \"Bearer {{abc.def-ghi~jkl}}\"`},
		{"authorization", "Authorization: {{abcdefg1}}\r\n"},
		{"password", "postgres://app:{{hunter2}}@db.test:5432/x"},
		{"password", "redis://:{{p4ss%20w}}@cache"},
		{"password", "git clone https://me:{{a@b!c}}@git.test/x.git"},
		{"credential", "DB_PASSWORD={{correcthorse}}"},
		{"credential", "export API_KEY={{abc123}} && run"},
		{"credential", `password: "{{hunter22}}"`},
		{"credential", `{"client_secret":"{{a1b2c3d4}}","x":1}`},
		{"credential", `'apiKey' => '{{abcd1234}}',`},
		{"credential", `authToken := "{{abcd1234}}"`},
		{"credential", "X-Api-Key: {{abcdef123456}}"},
		{"credential", "https://x.test/?access_token={{abcdef123456}}&y=2"},
		{"credential", "--password {{hunter22}} --verbose"},
		{"credential", "mysql --password={{hunter22hunter}}"},
		{"credential", `cmd --api-token "{{hunter22}}"`},
		{"credential", `msg: {\"password\": \"{{hunter22\\x}}\"}`},
		{"credential", "STRIPE_KEY={{abcdefgh}};"},
		{"credential", `SECRET_KEY="{{correct;horse&battery}}"`},
		{"credential", `password = "{{päss9wörd}}"`},
	} {
		plain := strings.NewReplacer("{{", "", "}}", "").Replace(test.text)
		begin, end := strings.Index(test.text, "{{"), strings.LastIndex(test.text, "}}")
		want := test.text[:begin] + "[redacted: " + test.kind + "]" + test.text[end+2:]
		if got := redact.Text(plain); got != want {
			t.Errorf("%q\n got  %q\n want %q", plain, got, want)
		} else if again := redact.Text(got); again != got || !redact.Marked(got) {
			t.Errorf("%q the second time is %q", got, again)
		}
		if got := string((*redact.Redactor)(nil).Bytes([]byte(plain))); got != want {
			t.Errorf("as bytes: %q, want %q", got, want)
		}
	}
}

// TestNoSecrets: what looks a little like one and is to stay.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "a", "commit 4105c44e1f0c8a7d9b2e3f4a5b6c7d8e9f0a1b2c",
		"sha256:" + hex, "550e8400-e29b-41d4-a716-446655440000", "id=550e8400-e29b-41d4-a716-446655440000",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"/home/user/.ssh/id_rsa", "C:\\Users\\me\\token.txt", "GOOGLE_KEY=/etc/keys/google.json", "SSH_KEY=~/.ssh/id_ed25519", `"private_key": "./keys/dev1.pem"`,
		"PWD=/home/u/src1", "OLDPWD=/tmp/abc123def", "PATH=/usr/bin:/bin", "AWS_REGION=us-east-1",
		"password := os.Getenv(\"DB_PASSWORD1\")", "token = getToken2()", "const token = request.headers[0]", "apiKey: process.env.API_KEY_2,",
		"token: string", "password?: string | undefined", `"password": ""`, `"token": null`, `{"password": "Enter your new password"}`, `"password": "Passwort"`,
		"PASSWORD=$DB_PASSWORD1", "TOKEN=${TOKEN:-abc123}", "TOKEN=$(cat /run/token1)", "TOKEN=`cat /run/token1`", `PASSWORD="x1$(reboot)y"`, "API_KEY=<your key 1>", `api_key = "{{ .Key1 }}"`,
		"Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "Authorization: Bearer ${ACCESS_TOKEN_1}", "Authorization: none", "the authorization: see RFC 6750",
		"max_tokens: 4096", "nextPageToken: abcdef123456789", "primary_key=customer_id_1", "CACHE_KEY=deps-v1-linux", "PUBLIC_KEY=abcdefgh12345678", "sort_key: abc123abc123abc",
		"password_file=/run/secrets/db1", "secretName: my-secret-name-1", "if password == \"hunter22\" {", "a != token1", "--token-file conf1/token1", "--password -p 12345678",
		"https://example.com:8080/a@b", "git@github.com:org/repo1.git", "ssh://git@github.com:22/x", "https://user@host/x", "http://u:$PASS1@host", "http://user:***@host", "http://user:{pass1}@host",
		"sk-learn-is-a-library-for-machine-learning", "task-1234567890abcdefghijklmnopqrstuvwxyz", "ask-" + a40, "npm_config_registry=https://registry.npmjs.org",
		"ghp_short1", "gh" + "p_" + strings.Repeat("x", 36), "xox" + "b-your-token-goes-right-here", "AKIAIOSFODNN7EXAMPLE2", "AKIAiosfodnn7example", "my_AKIAIOSFODNN7EXAMPLE",
		"eyJhbGciOi", "eyJhbGciOiJIUzI1NiJ9.x.y", "-----BEGIN PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----\n" + body + "-----END CERTIFICATE-----",
		"strings.HasPrefix(s, \"-----BEGIN PRIVATE KEY-----\") && strings.HasSuffix(s, \"-----END PRIVATE KEY-----\")",
		"-----BEGIN PRIVATE KEY-----\nrm -rf ~/everything\nreboot\n-----END PRIVATE KEY-----", "-----BEGIN PUBLIC KEY-----\n" + body, "-----BEGIN PRIVATE KEY-----\n-----BEGIN PRIVATE KEY-----",
		"password='a1; rm -rf /'", "TOKEN=********", "PASSWORD=changeme", "[redacted: jwt]", "PASSWORD=[redacted: credential]", "Authorization: Bearer [redacted: authorization]",
		"\xff\xfe=\x00", "ключ=значение1", "e\u0301yJ",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	r := redact.New([]string{"short", "value-of-mine", "value-of-mine-too", "redacted", "no\xff utf-8 at all", "value-of-mine", "in\"quotes"},
		[]*regexp.Regexp{regexp.MustCompile(`ACME-\d+`), regexp.MustCompile(`x*`)})
	for _, test := range []struct{ text, want string }{
		{"short value-of-mine.", "short [redacted: value]."},
		{"avalue-of-mine-toob", "a[redacted: value]b"},
		{"it is redacted", "it is [redacted: value]"},
		{"[redacted: value] redacted", "[redacted: value] [redacted: value]"},
		{"[redacted: nonsense]", "[[redacted: value]: nonsense]"},
		{"no\xff utf-8 at all", "no\xff utf-8 at all"},
		{"ACME-1 xxx ACME-", "[redacted: pattern] [redacted: pattern] ACME-"},
		{"TOKEN=ACME-17abcd", "TOKEN=[redacted: pattern]abcd"},
		{"TOKEN=value-of-mine1", "TOKEN=[redacted: value]1"},
	} {
		got := r.Text(test.text)
		if got != test.want || r.Text(got) != got {
			t.Errorf("%q became %q and %q, want %q", test.text, got, r.Text(got), test.want)
		}
	}
	if text := []byte("nothing here"); &(*redact.Redactor)(nil).Bytes(text)[0] != &text[0] {
		t.Error("bytes without a secret were copied")
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, want string }{
		{"password", "hunter22", "[redacted: credential]"},
		{"apiKey", "hunter22", "[redacted: credential]"},
		{"password", "Enter your password", "Enter your password"},
		{"password", "[redacted: value]", "[redacted: value]"},
		{"command", "echo " + ghp, "echo [redacted: github token]"},
		{"", "hunter22", "hunter22"},
	} {
		if got := (*redact.Redactor)(nil).Named(test.name, test.value); got != test.want {
			t.Errorf("%s %q became %q, want %q", test.name, test.value, got, test.want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	r := redact.New([]string{"in\"quotes", "naïve-value"}, nil)
	for _, test := range []struct{ text, want string }{
		{`{}`, `{}`},
		{"{ \"a\" :\t[1, \"b\"] }\n", "{ \"a\" :\t[1, \"b\"] }\n"},
		{`{"password": "hunter22", "x": "hunter22"}`, `{"password": "[redacted: credential]", "x": "hunter22"}`},
		{`{"password":["hunter22"],"y":"<in\"quotes>"}`, `{"password":["hunter22"],"y":"<[redacted: value]>"}`},
		{`["na\u00efve-value"]`, `["[redacted: value]"]`},
		{`{"command":"echo \"` + ghp + `\"\n"}`, `{"command":"echo \"[redacted: github token]\"\n"}`},
		{`{"` + ghp + `": 1}`, `{"` + ghp + `": 1}`},
		{`"TOKEN=abc\u00e4123"`, `"TOKEN=abc\u00e4123"`},
		{`{"a": ` + ghp, `{"a": [redacted: github token]`},
		{`{"token" : {"value": "hunter22"}}`, `{"token" : {"value": "hunter22"}}`},
	} {
		if got := string(r.JSON([]byte(test.text))); got != test.want {
			t.Errorf("%s became %s, want %s", test.text, got, test.want)
		}
	}
}

func BenchmarkText(b *testing.B) {
	line := "2026-01-02T03:04:05Z INFO served call=01HF session=abc path=/home/user/src/main.go took=12ms bytes=4096\n"
	code := "func (s *server) token(ctx context.Context) (string, error) { return s.get(ctx, \"https://x.test/a?b=c\") } // see s.key\n"
	secret := "export GITHUB_TOKEN=" + ghp + "\n"
	r := redact.New([]string{"a-value-of-the-environment", "another-one-of-them"}, nil)
	for _, text := range []struct{ name, piece string }{{"log", line}, {"code", code}, {"secrets", secret}, {"worst", "token="}} {
		for _, size := range []int{1 << 10, 1 << 20} {
			whole := strings.Repeat(text.piece, size/len(text.piece)+1)
			b.Run(fmt.Sprintf("%s/%d", text.name, size), func(b *testing.B) {
				b.SetBytes(int64(len(whole)))
				for b.Loop() {
					r.Text(whole)
				}
			})
		}
	}
}
