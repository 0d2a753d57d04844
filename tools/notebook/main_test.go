package notebook_test

import (
	"os"
	"testing"

	"github.com/toold/toold/tools/tooltest"
)

func TestMain(m *testing.M) { os.Exit(tooltest.Main(m)) }
