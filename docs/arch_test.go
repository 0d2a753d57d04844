// Which package may see which. The tests read import lines alone; they do not build anything, nor look at what the
// packages do.
package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the documents should show")

const module = "github.com/toold/toold"

// imports is the dependency rule: every package of the module, and exactly the packages of the module that it imports
// outside its tests. A package or an arrow that is not here is refused, and so is an arrow that is here for nothing.
var imports = map[string][]string{
	"bench":     {"bench/ratio", "bench/wire", "gen/toold/v1", "scheduler/permission", "tools/fs/repo", "tools/exec/sandbox"},
	"bench/day": {"bench/wire", "clients/go", "gen/toold/v1"},
	"bench/endure": {
		"bench/ledger", "bench/ratio", "bench/wire", "clients/go", "daemon", "daemon/access", "gen/toold/v1", "scheduler/gate", "tools", "tools/bash", "tools/edit", "tools/glob", "tools/grep", "tools/ls",
		"tools/read", "tools/exec/sandbox", "tools/todo", "tools/write",
	},
	"bench/ledger":       {"gen/toold/v1"},
	"bench/peer":         {"bench/ratio", "bench/wire"},
	"bench/ratio":        {},
	"bench/wire":         {"clients/go", "gen/toold/v1"},
	"clients/clienttest": {},
	"clients/go":         {"gen/toold/v1"},
	"cluster/cmd/toold-cluster": {
		"clients/go", "cluster/backup", "cluster/container", "cluster/gateway", "cluster/identity", "cluster/lease", "cluster/log", "cluster/log/natslog",
		"cluster/log/sqlitelog", "cluster/members", "daemon/access",
		"cluster/node", "cluster/objects", "cluster/quota", "cluster/snapshot", "cluster/trial", "gen/toold/v1",
	},
	"cluster/endure":    {"clients/go", "cluster/trial", "gen/toold/v1"},
	"cluster/trial":     {"clients/go", "cluster/identity"},
	"cluster/bench":     {"clients/go", "cluster/log", "cluster/log/natslog", "cluster/trial", "gen/toold/v1"},
	"cluster/container": {},
	"cluster/node": {
		"cluster/container", "cluster/identity", "cluster/lease", "cluster/log", "cluster/members", "cluster/objects", "cluster/quota", "cluster/relay", "cluster/snapshot",
		"daemon/apierror", "daemon/journal", "daemon/mirror", "gen/toold/v1",
	},
	"cluster/backup":         {"cluster/lease", "cluster/log", "cluster/objects", "cluster/snapshot"},
	"cluster/objects":        {},
	"cluster/snapshot":       {"cluster/objects"},
	"cluster/identity":       {"daemon/apierror"},
	"cluster/gen/cluster/v1": {},
	"cluster/lease":          {"cluster/gen/cluster/v1", "cluster/log"},
	"cluster/log":            {},
	"cluster/log/logtest":    {"cluster/log"},
	"cluster/log/natslog":    {"cluster/log"},
	"cluster/log/pglog":      {"cluster/log"},
	"cluster/log/sqlitelog":  {"cluster/log"},
	"cluster/members":        {"cluster/identity"},
	"cluster/natstest":       {},
	"cluster/s3test":         {},
	"cluster/quota":          {"cluster/members"},
	"cluster/relay":          {},
	"cluster/gateway":        {"cluster/identity", "cluster/members", "cluster/relay", "daemon/access", "daemon/apierror", "gen/toold/v1", "tools/text/ellipsis"},
	"cmd/toold": {
		"clients/go", "cmd/toold/internal/callargs", "cmd/toold/internal/changes", "cmd/toold/internal/cli",
		"cmd/toold/internal/connect", "cmd/toold/internal/demo", "cmd/toold/internal/mcpserver", "cmd/toold/internal/records",
		"cmd/toold/internal/stdio", "cmd/toold/internal/terminal", "cmd/toold/internal/turn", "daemon", "daemon/access", "daemon/dialect", "daemon/journal", "daemon/settings",
		"gen/toold/v1", "tools", "tools/bash", "tools/edit", "tools/glob", "tools/grep", "tools/ls", "tools/lsp", "tools/mcp", "tools/memory",
		"daemon/mirror", "daemon/telemetry", "daemon/telemetry/otlp", "tools/notebook", "tools/media/pdf", "tools/read", "tools/exec/sandbox", "tools/fs/pathname", "tools/todo", "tools/toolsearch", "tools/webfetch",
		"tools/websearch", "tools/write",
	},
	"cmd/toold/internal/callargs": {
		"cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/terminal", "cmd/toold/internal/turn",
		"daemon/dialect", "gen/toold/v1",
	},
	"cmd/toold/internal/changes": {
		"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/terminal", "gen/toold/v1",
		"tools/fs/workspace",
	},
	"cmd/toold/internal/cli":     {"clients/go", "cmd/toold/internal/terminal", "gen/toold/v1", "tools/fs/pathname"},
	"cmd/toold/internal/connect": {"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/rawio", "daemon/access", "daemon/settings", "gen/toold/v1"},
	"cmd/toold/internal/demo": {
		"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/terminal", "cmd/toold/internal/turn",
		"gen/toold/v1",
	},
	"cmd/toold/internal/golden": {},
	"cmd/toold/internal/mcpserver": {
		"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/lines", "cmd/toold/internal/rawio", "cmd/toold/internal/terminal", "cmd/toold/internal/turn",
		"gen/toold/v1", "tools/text/ellipsis",
	},
	"cmd/toold/internal/rawio": {},
	"cmd/toold/internal/records": {
		"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/terminal", "gen/toold/v1",
	},
	"cmd/toold/internal/lines": {},
	"cmd/toold/internal/stdio": {
		"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/lines", "daemon/contract", "gen/toold/v1",
	},
	"cmd/toold/internal/terminal": {"daemon/convert", "daemon/dialect", "gen/toold/v1", "scheduler/permission"},
	"cmd/toold/internal/turn": {
		"clients/go", "cmd/toold/internal/cli", "cmd/toold/internal/connect", "cmd/toold/internal/terminal", "daemon/convert", "daemon/dialect",
		"gen/toold/v1",
	},
	"contrib/dist": {},
	"daemon": {
		"daemon/web", "daemon/telemetry", "daemon/mirror", "daemon/access", "daemon/apierror", "daemon/checkpoint", "daemon/convert", "daemon/dialect", "daemon/guard", "daemon/journal", "daemon/pool", "daemon/quota", "daemon/sealed",
		"daemon/settings", "gen/toold/v1", "scheduler", "scheduler/gate", "scheduler/hook", "scheduler/permission", "scheduler/pipeline", "tools",
		"tools/exec/background", "tools/net/egress", "tools/net/forward", "tools/fault", "tools/exec/language", "tools/mcp", "tools/text/nearest",
		"tools/fs/pathname", "tools/program", "tools/text/ellipsis", "tools/text/redact", "tools/fs/repo", "tools/exec/sandbox", "tools/exec/spool",
		"tools/fs/index", "tools/fs/memstore", "tools/fs/workspace", "tools/media/image",
	},
	"daemon/access":     {"daemon/apierror", "tools/text/ellipsis"},
	"daemon/apierror":   {},
	"daemon/checkpoint": {"tools", "tools/fault", "tools/fs/pathname", "tools/fs/repo", "tools/fs/walk", "tools/fs/workspace", "tools/fs/workspace/text"},
	"daemon/convert": {
		"daemon/dialect",
		"daemon/checkpoint", "daemon/pool", "daemon/settings", "gen/toold/v1", "scheduler", "scheduler/permission", "scheduler/pipeline", "tools",
		"tools/exec/sandbox", "tools/fault", "tools/fs/workspace", "tools/text/ellipsis", "tools/text/redact",
	},
	"daemon/dialect":        {"tools", "tools/text/ellipsis"},
	"daemon/guard":          {},
	"daemon/journal":        {},
	"daemon/mirror":         {"daemon/journal", "gen/toold/v1"},
	"daemon/pool":           {"daemon/dialect", "tools", "tools/text/nearest"},
	"daemon/quota":          {},
	"daemon/sealed":         {},
	"daemon/settings":       {"daemon/pool", "scheduler/hook", "scheduler/permission", "tools/text/nearest", "tools/fs/pathname", "tools/exec/sandbox"},
	"daemon/telemetry":      {"scheduler/gate", "scheduler/pipeline", "tools/exec/sandbox"},
	"docs/picture":          {},
	"daemon/contract":       {},
	"daemon/web":            {"daemon/access", "daemon/apierror", "daemon/contract"},
	"daemon/telemetry/otlp": {"daemon/telemetry", "scheduler/pipeline"},
	"examples/filesearch": {
		"daemon", "daemon/access", "tools", "tools/edit", "tools/fault", "tools/glob", "tools/grep", "tools/ls", "tools/exec/sandbox", "tools/fs/walk",
		"tools/fs/workspace", "tools/fs/workspace/text", "tools/write",
	},
	"gen/toold/v1":         {},
	"scheduler":            {},
	"scheduler/gate":       {},
	"scheduler/hook":       {"scheduler/permission", "tools/text/ellipsis", "tools/fs/pathname", "tools/text/redact", "tools/exec/sandbox", "tools/exec/shell"},
	"scheduler/permission": {"tools/exec/shell", "tools/fs/gitdir", "tools/fs/memstore", "tools/fs/pathname", "tools/fs/walk", "tools/text/ellipsis"},
	"scheduler/pipeline": {
		"scheduler", "scheduler/gate", "scheduler/hook", "scheduler/permission", "tools", "tools/text/ellipsis", "tools/fault", "tools/grep/selection",
		"tools/fs/pathname", "tools/text/redact", "tools/fs/repo", "tools/exec/sandbox", "tools/exec/shell", "tools/exec/shell/damage", "tools/exec/spool", "tools/fs/walk",
		"tools/fs/memstore", "tools/fs/workspace", "tools/net/egress",
	},
	"tools": {
		"tools/exec/background", "tools/fault", "tools/exec/language", "tools/exec/sandbox", "tools/exec/shell", "tools/exec/spool",
		"tools/fs/index", "tools/fs/memstore", "tools/fs/workspace",
	},
	"tools/exec/background":           {"tools/exec/sandbox", "tools/exec/spool", "tools/exec/terminal"},
	"tools/exec/terminal":             {"tools/exec/sandbox"},
	"tools/bash":                      {"tools", "tools/exec/background", "tools/fault", "tools/fs/repo", "tools/exec/sandbox", "tools/exec/shell", "tools/exec/spool", "tools/exec/terminal", "tools/text/ellipsis"},
	"tools/media/ipynb":               {},
	"tools/edit":                      {"tools", "tools/fault", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/net/egress":                {},
	"tools/text/ellipsis":             {},
	"tools/fault":                     {},
	"tools/glob":                      {"tools", "tools/fault", "tools/fs/pathname", "tools/fs/walk", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/grep/selection":            {"tools/exec/shell", "tools/fs/walk"},
	"tools/grep":                      {"tools", "tools/fault", "tools/grep/selection", "tools/exec/sandbox", "tools/fs/index", "tools/fs/walk", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/exec/language":             {"tools/text/ellipsis", "tools/fault", "tools/fs/pathname", "tools/exec/sandbox"},
	"tools/ls":                        {"tools", "tools/fs/index", "tools/fs/walk", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/memory":                    {"tools", "tools/fault", "tools/fs/memstore", "tools/fs/workspace/text", "tools/text/ellipsis"},
	"tools/lsp":                       {"tools", "tools/fault", "tools/exec/language", "tools/fs/workspace/text"},
	"tools/mcp":                       {"tools", "tools/text/ellipsis", "tools/fault", "tools/fs/pathname", "tools/media/image", "tools/exec/sandbox"},
	"tools/text/nearest":              {},
	"tools/notebook":                  {"tools", "tools/fault", "tools/media/ipynb", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/fs/pathname":               {},
	"tools/media/pdf":                 {"tools/fault", "tools/fs/pathname", "tools/exec/sandbox"},
	"tools/media/image":               {},
	"tools/program":                   {"tools", "tools/text/ellipsis", "tools/fault", "tools/fs/pathname", "tools/media/image", "tools/exec/sandbox", "tools/exec/spool"},
	"tools/read":                      {"tools", "tools/fault", "tools/media/ipynb", "tools/media/pdf", "tools/media/image", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/text/redact":               {},
	"tools/fs/gitdir":                 {"tools/fs/pathname"},
	"tools/fs/repo":                   {"tools/fs/gitdir", "tools/fs/pathname"},
	"tools/exec/sandbox":              {"tools/fs/pathname", "tools/net/sockdiag"},
	"tools/net/forward":               {"tools/net/sockdiag"},
	"tools/net/sockdiag":              {},
	"tools/exec/sandbox/escape":       {},
	"tools/exec/sandbox/escape/probe": {"tools/exec/sandbox/escape/scene"},
	"tools/exec/sandbox/escape/scene": {},
	"tools/exec/shell":                {},
	"tools/exec/shell/damage":         {"tools/exec/shell"},
	"tools/exec/spool":                {},
	"tools/todo":                      {"tools"},
	"tools/toolsearch":                {"tools", "tools/fault", "tools/text/nearest"},
	"tools/tooltest/ownspace":         {},
	"tools/tooltest": {
		"tools", "tools/exec/background", "tools/fault", "tools/exec/language", "tools/fs/pathname", "tools/exec/sandbox", "tools/exec/spool", "tools/exec/terminal",
		"tools/fs/memstore", "tools/fs/workspace",
	},
	"tools/fs/index":          {},
	"tools/fs/memstore":       {},
	"tools/fs/walk":           {"tools/fault", "tools/fs/index", "tools/fs/pathname", "tools/fs/repo", "tools/fs/workspace", "tools/fs/workspace/text"},
	"tools/net/web":           {"tools/net/egress", "tools/fault"},
	"tools/webfetch":          {"tools", "tools/net/egress", "tools/fault", "tools/media/pdf", "tools/media/image", "tools/exec/sandbox", "tools/net/web", "tools/fs/workspace/text"},
	"tools/websearch":         {"tools", "tools/net/egress", "tools/text/ellipsis", "tools/fault", "tools/net/web", "tools/fs/workspace/text"},
	"tools/fs/workspace":      {"tools/fault", "tools/text/nearest", "tools/fs/pathname", "tools/fs/workspace/text"},
	"tools/fs/workspace/text": {},
	"tools/write":             {"tools", "tools/fs/workspace", "tools/fs/workspace/text"},
}

// confined are the libraries that only some rooms may see: gRPC and the wire types stay at the edge, and below the
// daemon nobody logs.
var confined = []struct {
	library string
	rooms   []string // a room and everything below it
}{
	{"google.golang.org/grpc", []string{"gen", "daemon", "cmd", "clients", "bench", "cluster"}},
	{"google.golang.org/protobuf", []string{"gen", "daemon", "cmd", "clients", "bench", "cluster"}},
	{module + "/gen", []string{"daemon", "cmd", "clients", "bench", "cluster"}},
	{"go.uber.org/zap", []string{"daemon", "cmd", "bench", "cluster"}},
	{"log", []string{"tools/net/egress"}}, // net/http's server wants one, to say nothing with
	{"log/slog", nil},
	{"github.com/spf13/cobra", []string{"cmd", "cluster"}},
	{"database/sql", nil},
	{"modernc.org/sqlite", nil},
	{"zombiezen.com/go/sqlite", []string{"daemon/journal", "cluster/log/sqlitelog"}},
	{"github.com/jackc/pgx", []string{"cluster/log/pglog"}},
	{"github.com/nats-io", []string{"cluster"}},
	{"mvdan.cc/sh/v3", []string{"tools/exec/shell"}},
	{"golang.org/x/image", []string{"tools/media/image", "tools/media/pdf"}},
	{"github.com/modelcontextprotocol/go-sdk", []string{"cmd", "tools/mcp"}},
	{"github.com/ledongthuc/pdf", []string{"tools/media/pdf"}},
	{"github.com/sourcegraph/jsonrpc2", []string{"tools/exec/language"}},
}

// A source is one Go file that is not a test, and where it lies.
type source struct {
	dir  string // relative to the module's root, with slashes
	name string
	file *ast.File
}

// sources parses every Go file of the module that is not a test.
func sources(t *testing.T, mode parser.Mode) []source {
	t.Helper()
	var all []source
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, mode)
		all = append(all, source{dir: path.Dir(name), name: name, file: file})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// walk visits the module's files by their names from its root, less those that are not of the module.
func walk(visit func(name string) error) error {
	return filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" ||
			strings.HasPrefix(entry.Name(), ".") && name != "." && entry.Name() != ".ci"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		default:
			return visit(filepath.ToSlash(name))
		}
	})
}

// arrows returns, for each package, the packages of the module that it imports, sorted.
func arrows(t *testing.T) map[string][]string {
	found := map[string][]string{}
	for _, s := range sources(t, parser.ImportsOnly) {
		if found[s.dir] == nil {
			found[s.dir] = []string{}
		}
		for _, spec := range s.file.Imports {
			inner, ours := strings.CutPrefix(imported(spec), module+"/")
			if ours && !slices.Contains(found[s.dir], inner) {
				found[s.dir] = append(found[s.dir], inner)
			}
		}
		slices.Sort(found[s.dir])
	}
	return found
}

func imported(spec *ast.ImportSpec) string {
	name, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic("BUG: the parser let a bad import path through: " + spec.Path.Value)
	}
	return name
}

func TestDependencyRule(t *testing.T) {
	found := arrows(t)
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		allowed, known := imports[dir]
		if !known {
			t.Errorf("package %s is not in the table: say in docs/arch_test.go what it may import", dir)
		}
		for _, inner := range found[dir] {
			if known && !slices.Contains(allowed, inner) {
				t.Errorf("%s imports %s, which the table does not allow", dir, inner)
			}
		}
		for _, inner := range allowed {
			if !slices.Contains(found[dir], inner) {
				t.Errorf("the table lets %s import %s, and it does not: take the arrow out", dir, inner)
			}
		}
	}
	for dir := range imports {
		if found[dir] == nil {
			t.Errorf("the table has %s, and there is no such package", dir)
		}
	}
}

// The table itself keeps to the shape of the house, so that an arrow that breaks it cannot be added by adding a line.
func TestTableKeepsTheShape(t *testing.T) {
	isTool := func(dir string) bool {
		return strings.HasPrefix(dir, "tools/") && slices.Contains(imports[dir], "tools") && dir != "tools/tooltest"
	}
	floor := map[string]int{"tools": 0, "scheduler": 1, "daemon": 2, "clients": 2, "cmd": 3, "bench": 3, "docs": 3, "examples": 3, "contrib": 3, "cluster": 4}
	for dir, allowed := range imports {
		level, known := floor[strings.Split(dir, "/")[0]]
		if !known && dir != "gen/toold/v1" {
			t.Errorf("%s is on no floor of the house: the top level is fixed", dir)
		}
		for _, inner := range allowed {
			if floor[strings.Split(inner, "/")[0]] > level {
				t.Errorf("%s may not import %s: arrows point down", dir, inner)
			}
			if isTool(dir) && isTool(inner) {
				t.Errorf("%s may not import %s: no tool imports another", dir, inner)
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, s := range sources(t, parser.ImportsOnly) {
		for _, spec := range s.file.Imports {
			for _, rule := range confined {
				if within(imported(spec), rule.library) && !slices.ContainsFunc(rule.rooms, func(room string) bool { return within(s.dir, room) }) {
					t.Errorf("%s imports %s, which only %v may see", s.name, imported(spec), rule.rooms)
				}
			}
		}
	}
}

// within reports that name is top or lies below it, by component.
func within(name, top string) bool { return name == top || strings.HasPrefix(name, top+"/") }

// The import picture in ARCHITECTURE.md is the table above, word for word.
func TestArchitectureShowsTheImports(t *testing.T) {
	var want strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		if len(imports[dir]) == 0 {
			fmt.Fprintf(&want, "%s -> nothing of ours\n", dir)
			continue
		}
		fmt.Fprintf(&want, "%s -> %s\n", dir, strings.Join(slices.Sorted(slices.Values(imports[dir])), ", "))
	}
	text := document(t, "ARCHITECTURE.md")
	block := regexp.MustCompile("(?s)(<!-- imports -->\n```\n).*?```")
	shown := block.ReplaceAllString(text, "${1}"+want.String()+"```")
	if *update && shown != text {
		if err := os.WriteFile("ARCHITECTURE.md", []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !block.MatchString(text) || shown != document(t, "ARCHITECTURE.md") {
		t.Error("the import picture of ARCHITECTURE.md is not the table of docs/arch_test.go; -update writes it")
	}
}
