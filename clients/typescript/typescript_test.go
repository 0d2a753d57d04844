// Package typescript_test builds the TypeScript library and runs its tests against the real daemon.
package typescript_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTypeScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		lacking(t, "Node")
	}
	compiler := "node_modules/typescript/bin/tsc"
	if _, err := os.Stat(compiler); err != nil {
		lacking(t, `the packages of clients/typescript, which "make clients" installs`)
	}
	env := placeOfItsOwn(t)
	run(t, env, node, compiler, "-p", ".")
	t.Cleanup(func() { run(t, env, "toold", "stop", "--now") })
	tests, err := filepath.Glob("test/*.test.js")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, file := range tests { // one after the other: some kill the daemon
		run(t, env, node, "--test", file)
	}
}

// TestPackage: what npm would publish is the compiled library and its documents, and nothing else.
func TestPackage(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		lacking(t, "npm")
	}
	cmd := exec.CommandContext(t.Context(), npm, "pack", "--dry-run", "--ignore-scripts", "--json")
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("npm pack: %v\n%s", err, output)
	}
	for _, unwanted := range []string{`"test/`, `"src/`, `"node_modules/`, "_test.go", "tsconfig", "buf.gen"} {
		if strings.Contains(string(output), unwanted) {
			t.Errorf("the package has %s", unwanted)
		}
	}
	for _, wanted := range []string{`"README.md"`, `"LICENSE"`, `"CHANGELOG.md"`} {
		if !strings.Contains(string(output), wanted) {
			t.Errorf("the package lacks %s:\n%s", wanted, output)
		}
	}
}

// placeOfItsOwn builds toold and returns an environment in which it is found, and has its socket, state and settings apart
// from the user's.
func placeOfItsOwn(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "toold") // not t.TempDir: a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := filepath.Join(dir, "bin")
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TOOLD_") })
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")) // exec.Command looks there too
	env = append(env, "PATH="+os.Getenv("PATH"))
	for variable, name := range map[string]string{"HOME": "home", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "TMPDIR": "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		env = append(env, variable+"="+filepath.Join(dir, name))
	}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/toold", "../../cmd/toold").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return env
}

// run runs a program, and fails the test with what it printed if it fails.
func run(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = env
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, output)
	}
}

// lacking skips a test for want of something, or fails it where CI has promised that everything is there.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}
