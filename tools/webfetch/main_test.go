package webfetch

import (
	"os"
	"testing"

	"github.com/toold/toold/tools/read/pdf"
	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) {
	if code, is := pdf.Main(os.Args); is {
		os.Exit(code)
	}
	os.Exit(tooltest.Main(m))
}
