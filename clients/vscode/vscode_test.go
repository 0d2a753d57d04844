// Package vscode_test builds the extension, runs its tests with a stand-in for the editor against the real daemon, and packs it.
package vscode_test

import (
	"archive/zip"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toold/toold/clients/clienttest"
)

func TestExtension(t *testing.T) {
	node := built(t)
	env := clienttest.Place(t)
	for _, file := range []string{"test/logic.test.js", "test/daemon.test.js"} {
		clienttest.Run(t, env, node, "--test", file)
	}
}

// TestPackage: the file that the editor installs has the program, its documents, and nothing else.
func TestPackage(t *testing.T) {
	node := built(t)
	if exec.CommandContext(t.Context(), node, "-e", "process.exit(Number(process.versions.node.split('.')[0]) < 20 ? 1 : 0)").Run() != nil {
		clienttest.Lacking(t, "Node 20 or newer, for vsce")
	}
	file := filepath.Join(t.TempDir(), "toold.vsix")
	clienttest.Run(t, os.Environ(), node, "node_modules/@vscode/vsce/vsce", "package", "--no-dependencies", "--out", file)
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	found := map[string]bool{}
	for _, f := range archive.File {
		found[f.Name] = true
	}
	want := map[string]bool{"extension.vsixmanifest": true, "[Content_Types].xml": true}
	for _, name := range []string{"package.json", "readme.md", "changelog.md", "LICENSE.txt"} {
		want["extension/"+name] = true
	}
	sources, err := filepath.Glob("src/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		name := filepath.Base(source)
		want["extension/dist/"+name[:len(name)-len(".ts")]+".js"] = true
	}
	if !maps.Equal(found, want) {
		t.Errorf("the package has\n%q\nwant\n%q", slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want)))
	}
}

// built compiles the extension, and returns the program node.
func built(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		clienttest.Lacking(t, "Node")
	}
	compiler := "node_modules/typescript/bin/tsc"
	if _, err := os.Stat(compiler); err != nil {
		clienttest.Lacking(t, `the packages of clients/vscode, which "make clients" installs`)
	}
	clienttest.Run(t, os.Environ(), node, compiler, "-p", ".")
	return node
}
