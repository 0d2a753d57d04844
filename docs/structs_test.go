package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"os"
	"regexp"
	"strings"
	"testing"
)

const (
	maxFields  = 25
	maxMethods = 60
)

// TestStructsStaySmall counts the fields and methods of each struct, tests aside. ARCHITECTURE.md lists the exceptions, with
// their fields.
func TestStructsStaySmall(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	type counts struct{ fields, methods int }
	structs := map[string]*counts{}
	count := func(dir, name string) *counts {
		key := fmt.Sprintf("`%s` in `%s`", name, dir)
		if structs[key] == nil {
			structs[key] = &counts{}
		}
		return structs[key]
	}
	for _, s := range sources(t, parser.SkipObjectResolution) {
		if strings.HasPrefix(s.dir, "gen/") {
			continue
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					count(s.dir, receiver(d.Recv.List[0].Type)).methods++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						if st, ok := typ.Type.(*ast.StructType); ok {
							count(s.dir, typ.Name.Name).fields = st.Fields.NumFields()
						}
					}
				}
			}
		}
	}
	for key, c := range structs {
		row := fmt.Sprintf("| %s | %d |", key, c.fields)
		switch excused := strings.Contains(string(text), row); {
		case c.fields <= maxFields && c.methods <= maxMethods && !excused:
		case c.fields <= maxFields && excused:
			t.Errorf("%s has %d fields: take its row out of ARCHITECTURE.md", key, c.fields)
		case c.methods > maxMethods, !excused:
			t.Errorf("%s has %d fields and %d methods: cut it into parts with owners, or give the reason in ARCHITECTURE.md in a row that begins with %q", key, c.fields, c.methods, row)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`\\w+` in `[^`]+`) \\| \\d+ \\|").FindAllStringSubmatch(string(text), -1) {
		if structs[row[1]] == nil {
			t.Errorf("ARCHITECTURE.md excuses %s, which does not exist", row[1])
		}
	}
	if len(structs) < 100 {
		t.Errorf("only %d structs were found", len(structs))
	}
}

// receiver returns the name of a method's type.
func receiver(typ ast.Expr) string {
	switch x := typ.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
