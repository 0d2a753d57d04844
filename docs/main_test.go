package docs_test

import (
	"os"
	"testing"
)

// TestMain has the tests run at the root of the tree, which is what they are about.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
