package main

// What the build tags of groups leave out: the group's own code and the libraries that no other package needs. Go's own list of
// what is linked is asked, and no network.

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const project = "github.com/toold/toold/"

// groupCode is what each tag leaves out: packages, and libraries by the beginning of their packages' names.
var groupCode = map[string][]string{
	"no_web": {project + "tools/webfetch", project + "tools/websearch", project + "tools/net/web", "github.com/JohannesKaufmann/html-to-markdown/", "golang.org/x/net/html"},
	"no_lsp": {project + "tools/lsp", "github.com/sourcegraph/jsonrpc2"},
	"no_mcp": {"github.com/modelcontextprotocol/go-sdk/"},
}

// golang runs the go command without a network.
func golang(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, &complaint)
	}
	return string(out)
}

// TestGroupsAreLeftOut: each tag takes its own group out of the program and no other, and all of them every group.
func TestGroupsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, tags := range [][]string{nil, {"no_web"}, {"no_lsp"}, {"no_mcp"}, {"no_web", "no_lsp", "no_mcp"}} {
		linked := strings.Fields(golang(t, "list", "-deps", "-tags", strings.Join(tags, ","), "."))
		for tag, code := range groupCode {
			for _, name := range code {
				out := slices.Contains(tags, tag)
				if in := slices.ContainsFunc(linked, belongs(name)); in == out {
					t.Errorf("with the tags %q, is %s linked: %t, want %t", tags, name, in, !out)
				}
			}
		}
	}
}

// belongs returns whether a package is the one of that name, or of the library whose packages begin so.
func belongs(name string) func(string) bool {
	return func(linked string) bool {
		return linked == name || strings.HasSuffix(name, "/") && strings.HasPrefix(linked, name)
	}
}

// TestSpansAreAdded: the tag otel adds the exporter of spans to the program, and nothing else does.
func TestSpansAreAdded(t *testing.T) {
	t.Parallel()
	for tags, want := range map[string]bool{"": false, "otel": true, "otel,no_web,no_lsp,no_mcp": true} {
		linked := strings.Fields(golang(t, "list", "-deps", "-tags", tags, "."))
		if got := slices.ContainsFunc(linked, belongs("go.opentelemetry.io/")); got != want {
			t.Errorf("with the tags %q, is OpenTelemetry linked: %t, want %t", tags, got, want)
		}
	}
	golang(t, "list", "-export", "-test", "-tags", "otel", ".")
}

// TestSmallestBuild: what is left without any group fits together, its tests included.
func TestSmallestBuild(t *testing.T) {
	t.Parallel()
	golang(t, "list", "-export", "-test", "-tags", "no_web,no_lsp,no_mcp", ".") // which compiles, and neither links nor vets
}
