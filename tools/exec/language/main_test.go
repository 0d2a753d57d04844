//go:build !no_lsp

package language_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/tooltest"
)

// TestMain makes the test's program a language server of some kind if its arguments say so.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	code := tooltest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// A session is a root with language servers.
type session struct {
	*testing.T
	root    string
	set     *language.Set
	servers []language.Server
}

// newSession makes one whose servers and their processes are gone with the test. The program "serve" among the servers is
// the test's own.
func newSession(t *testing.T, servers ...language.Server) *session {
	t.Helper()
	runner, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{T: t, root: realDir(t), servers: servers}
	s.set = language.NewSet(language.Host{
		Roots: []string{s.root}, Servers: func() []language.Server { return s.servers }, Environ: os.Environ,
		Box: func(string) *sandbox.Box { return &sandbox.Box{Runner: runner} },
	})
	t.Cleanup(func() {
		s.set.Close()
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
