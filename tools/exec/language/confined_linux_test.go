//go:build !no_lsp

package language_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/tools/exec/language"
	"github.com/toold/toold/tools/exec/sandbox"
)

// A real gopls works where it can write nothing but a cache of its own and reach no network, and where what is hidden cannot
// come into its answers.
func TestConfined(t *testing.T) {
	server := gopls(t) // first: it may skip the test
	runner, err := sandbox.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	root, cache := realDir(t), realDir(t)
	s := &session{T: t, root: root, servers: []language.Server{server}}
	policy := sandbox.Policy{Tier: sandbox.Full, Places: []sandbox.Place{
		{Path: root, Access: sandbox.Read}, {Path: cache, Access: sandbox.Write}, {Path: filepath.Join(root, "secret.go"), Access: sandbox.Hidden},
	}}
	if confinement, err := runner.Confinement(policy); err != nil || confinement.Tier != sandbox.Full {
		runner.Close()
		lacking(t, "user namespaces")
	}
	home, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	s.set = language.NewSet(language.Host{
		Roots: []string{root}, Servers: func() []language.Server { return s.servers }, Environ: os.Environ,
		Box: func(string) *sandbox.Box {
			return &sandbox.Box{Runner: runner, Policy: policy, Set: []string{
				"GOCACHE=" + cache + "/go-build", "XDG_CACHE_HOME=" + cache, "TMPDIR=" + cache, "GOMODCACHE=" + strings.TrimSpace(string(home)),
			}}
		},
	})
	t.Cleanup(func() {
		s.set.Close()
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
	})
	s.put("go.mod", goMod)
	main := s.put("main.go", "package m\n\nvar text = secret + open\n")
	s.put("secret.go", "package m\n\nvar secret = \"the key\"\n")
	s.put("open.go", "package m\n\nvar open = \"\"\n")
	list, err := s.set.Definition(t.Context(), s.at(main, "|open"))
	expect(t, "what is open", s.show(list), err, `open.go:3:5 var open = ""`)
	if list, err := s.set.Definition(t.Context(), s.at(main, "|secret")); len(list) != 0 {
		t.Errorf("what is hidden: %+v, %v", list, err)
	}
}
