package sandbox

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	base := []string{
		"A=1", "PATH=/bin", "A=2", "GITHUB_TOKEN=x", "my_secret=x", "API_KEY=x", "KEY=x", "DB_PASSWORD_FILE=x", "AWS_REGION=x",
		"SSH_AUTH_SOCK=x", "DBUS_SESSION_BUS_ADDRESS=x", "DOCKER_HOST=x", "BASH_FUNC_f%%=() { :; }", "BASH_ENV=x", "ENV=x",
		"SHELLOPTS=x", "BASHOPTS=x", "PS4=x", "LD_PRELOAD=x", "GIT_DIR=x", "GIT_CONFIG_COUNT=1", "GIT_EXTERNAL_DIFF=x",
		"PROMPT_COMMAND=x", "LESSOPEN=x", "RIPGREP_CONFIG_PATH=x", "TOOLD_CALL=other", "TERM=xterm", "no equals sign", "=x",
		"NUL=a\x00b", "MONKEY=banana", "TOKENIZER=fast", "ENVIRONMENT=test", "EMPTY=", "LDFLAGS=-s", "GIT_AUTHOR_NAME=n",
	}
	got := Environ(base, "TERM=dumb", "GIT_CONFIG_COUNT=0")
	want := []string{
		"PATH=/bin", "A=2", "MONKEY=banana", "TOKENIZER=fast", "ENVIRONMENT=test", "EMPTY=", "LDFLAGS=-s", "GIT_AUTHOR_NAME=n",
		"TERM=dumb", "GIT_CONFIG_COUNT=0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := Environ(nil); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		filter   Filter
		withheld bool
	}{
		{"NPM_TOKEN", Filter{}, true},
		{"HOME", Filter{}, false},
		{"NPM_TOKEN", Filter{Keep: []string{"NPM_TOKEN"}}, false},
		{"NPM_TOKEN", Filter{Keep: []string{"NPM_*"}}, false},
		{"NPM_TOKEN", Filter{Keep: []string{"*_TOKEN"}}, false},
		{"NPM_TOKEN", Filter{Keep: []string{"*PM_TO*"}}, false},
		{"NPM_TOKEN", Filter{Keep: []string{"*"}}, false},
		{"NPM_TOKEN", Filter{Keep: []string{"NPM", "TOKEN", "npm_token", ""}}, true},
		{"NPM_TOKEN", Filter{Keep: []string{"NPM_TOKEN"}, Withhold: []string{"NPM_TOKEN"}}, true},
		{"INTERNAL_URL", Filter{Withhold: []string{"INTERNAL_*"}}, true},
		{"internal_url", Filter{Withhold: []string{"INTERNAL_*"}}, true},
		{"INTERNAL_URL", Filter{Withhold: []string{"internal_url"}}, true},
		{"HOME", Filter{Withhold: []string{"INTERNAL_*", ""}}, false},
		{"HOME", Filter{Withhold: []string{"*"}}, true},
		{"LD_PRELOAD", Filter{Keep: []string{"LD_PRELOAD", "LD_*", "*"}}, true},
		{"BASH_FUNC_f%%", Filter{Keep: []string{"*"}}, true},
		{MarkerName, Filter{}, false}, // not by its name: Environ leaves it out
	} {
		if got := test.filter.Withheld(test.name); got != test.withheld {
			t.Errorf("%+v withholds %s: %v, want %v", test.filter, test.name, got, test.withheld)
		}
	}
	got := Filter{Withhold: []string{"TERM"}, Keep: []string{"*"}}.Environ(
		[]string{"TERM=a", "X_KEY=b", "LD_PRELOAD=c", "X_KEY=d", MarkerName + "=e"}, "TERM=set", "AWS_X=set")
	if want := []string{"X_KEY=d", "TERM=set", "AWS_X=set"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	got := Filter{Withhold: []string{"inner_*"}, Keep: []string{"NPM_TOKEN"}}.Secrets([]string{
		"NPM_TOKEN=abcdefg1", "DB_PASSWORD=postgres", "DB_PASSWORD=postgres and more", "API_KEY=short1", "SSH_KEY=/home/u/.ssh/id_ed25519",
		"AWS_REGION=us-east-1", "AWS_SECRET_ACCESS_KEY=abc/defg1", "LD_PRELOAD=/lib/x1.so.1", "INNER_URL=http://inner.test", "DATABASE_URL=postgres://x",
		"DATABASE_URL=postgres://u:p@host/x", "HOME=/home/user1", "no equals sign", "X_TOKEN=",
	})
	want := []string{"abcdefg1", "postgres and more", "abc/defg1", "http://inner.test", "postgres://u:p@host/x"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// docs/secrets.md names what is withheld.
func TestWithheldIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/secrets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(dangerous, secretPlaces, secretEndings) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/secrets.md does not name %s", name)
		}
	}
}
