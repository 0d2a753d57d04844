package grep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/tools/fault"

	"github.com/toold/toold/tools/exec/sandbox"
)

// This file compares the two engines with each other on made-up files and patterns.

var patternPieces = []string{
	"a", "b", "ab", "needle", "é", "ß", "K", "s", " ", ".", ".*", "a+", "b*?", "(a|b)", "(?:ab|needle|é)", "[ab]", "[^a]", "[^a-c\\s]", `\d`, `\w+`, `\s`, `\S`, `\W`, `\D`,
	"^", "$", "a{2}", "b{1,3}", "x?", "(?i)", "(?i:aB)", `\.`, `\{`, `\x41`, "[[:upper:]]", "[]a]", `\p{L}`, `\pN`, "(?P<n>a)", "|", "1", "[0-9]+", "[é-ü]", `[\w-]`, "ſ",
}

var textPieces = []string{"a", "b", "ab", "AB", "needle", "Needle", "é", "É", "ß", "k", "\u212a", "s", "ſ", " ", "  ", ".", "{", "1", "٣", "\t", "\u00a0", "x", "aa", "\r", "-", "ü"}

func someText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(14) {
		for range r.IntN(9) {
			b.WriteString(textPieces[r.IntN(len(textPieces))])
		}
		b.WriteByte('\n')
	}
	if r.IntN(3) == 0 {
		b.WriteString("needle")
	}
	return b.String()
}

func someInput(r *rand.Rand) Input {
	in := Input{OutputMode: []string{modeContent, modeContent, modeContent, modeCount, modeFiles}[r.IntN(5)]}
	for range 1 + r.IntN(4) {
		in.Pattern += patternPieces[r.IntN(len(patternPieces))]
	}
	in.IgnoreCase, in.Only, in.Multiline = r.IntN(4) == 0, r.IntN(5) == 0, r.IntN(5) == 0
	if r.IntN(2) == 0 {
		before, after := int64(r.IntN(3)), int64(r.IntN(3))
		in.Before, in.After = &before, &after
	}
	return in
}

func TestEnginesAgree(t *testing.T) {
	rg, runner := onlyRipgrep(t)
	rounds := 120
	if testing.Short() {
		rounds = 40
	}
	compared := 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		dir := t.TempDir()
		var tree []section
		for i := range 4 {
			tree = append(tree, section{fmt.Sprintf("f%d", i), someText(r)})
		}
		plant(t, dir, tree)
		in := someInput(r)
		input, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		env := newEnv(t, dir)
		env.Box = &sandbox.Box{Runner: runner}
		expr, err := compile(in)
		if err != nil || !expr.exact && !in.Multiline {
			continue
		}
		if (in.Only || in.Multiline && in.OutputMode == modeCount) && expr.re.MatchString("") {
			continue // how often nothing occurs in a text is a matter of taste, and of rg's version
		}
		want, wantFound, wantErr := call(context.Background(), rg, env, string(input))
		got, gotFound, gotErr := call(context.Background(), own(), env, string(input))
		if isFault(wantErr, "bad_pattern") {
			continue // ours takes a little more
		}
		compared++
		if diff := cmp.Diff(want, got) + cmp.Diff(wantFound, gotFound); diff != "" || wantErr != nil || gotErr != nil {
			t.Fatalf("seed %d: %s\nfiles %q\nrg (-) and our engine (+), errors %v and %v:\n%s", seed, input, tree, wantErr, gotErr, diff)
		}
	}
	if compared < rounds/2 {
		t.Errorf("only %d of %d patterns could be compared", compared, rounds)
	}
}

func isFault(err error, code string) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Code == code
}
