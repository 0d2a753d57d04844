package ownspace

import (
	"os"
	"testing"
)

// Lacks skips a test that needs what is not here. The sentence names what to install. Where
// everything has to be there, which TOOLD_CI says, the test fails.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
