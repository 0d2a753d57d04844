//go:build !no_lsp

package language_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/tools/exec/language"
)

// A real typescript-language-server, which names no versions and counts in UTF-16, answers too, and tells what an edit brings.
func TestTypeScript(t *testing.T) {
	s := newSession(t, typescript(t))
	s.put("tsconfig.json", `{"compilerOptions": {"strict": true}, "include": ["*.ts"]}`)
	lib := s.put("lib.ts", "export function greet(name: string): string { return name }\n")
	const use = "import { greet } from './lib'\n\n/* 😀 */ export const said: string = greet('you')\n"
	main := s.put("main.ts", use)

	list, err := s.set.Definition(t.Context(), s.at(main, "= |greet"))
	expect(t, "definition", s.show(list), err, "lib.ts:1:17 export function greet(name: string): string { return name }")
	// Before what follows, which interrupts the server in looking for them.
	found, err := s.set.Diagnose(t.Context(), language.Query{Path: main, Text: os.ReadFile})
	if err != nil || !found.Complete || len(found.List) != 0 {
		t.Errorf("diagnostics: %+v, %v", found, err)
	}
	list, err = s.set.References(t.Context(), s.at(lib, "|greet"))
	expect(t, "references", s.show(list), err, `lib.ts:1:17 export function greet(name: string): string { return name }
main.ts:1:10 import { greet } from './lib'
main.ts:3:37 /* 😀 */ export const said: string = greet('you')`)
	renaming, err := s.set.Rename(t.Context(), s.at(lib, "|greet"), "salute")
	if err != nil || len(renaming.Changes) != 2 || string(renaming.Changes[1].After) != strings.ReplaceAll(use, "greet", "salute") {
		t.Errorf("rename: %+v, %v", renaming, err)
	}

	w := s.set.Watch(t.Context(), main, []byte(use))
	if w == nil {
		t.Fatal("nothing is watched")
	}
	broken := strings.Replace(use, "'you'", "7", 1)
	s.put("main.ts", broken)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all []string
	for _, d := range w.New(ctx, []byte(broken)) {
		all = append(all, fmt.Sprintf("%d:%d %s %s", d.Range.Start.Line, d.Range.Start.Character, d.Severity, d.Code))
	}
	expect(t, "a type error", strings.Join(all, "\n"), nil, "3:43 error 2345")
}
