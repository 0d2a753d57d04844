// Package typescript_test builds the TypeScript library and runs its tests against the real daemon.
package typescript_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toold/toold/clients/clienttest"
)

func TestTypeScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		clienttest.Lacking(t, "Node")
	}
	compiler := "node_modules/typescript/bin/tsc"
	if _, err := os.Stat(compiler); err != nil {
		clienttest.Lacking(t, `the packages of clients/typescript, which "make clients" installs`)
	}
	env := clienttest.Place(t)
	clienttest.Run(t, env, node, compiler, "-p", ".")
	clienttest.Run(t, env, node, "--test", "test/session.test.js")
}

// TestPackage: what npm would publish is the compiled library and its documents, and nothing else.
func TestPackage(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		clienttest.Lacking(t, "npm")
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
