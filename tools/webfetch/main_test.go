package webfetch

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toold/toold/tools/pdf"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	if code, is := pdf.Main(os.Args); is {
		os.Exit(code)
	}
	code := tooltest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
