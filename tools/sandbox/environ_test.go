package sandbox

import (
	"slices"
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
