package log_test

import (
	"testing"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/logtest"
)

func TestMemory(t *testing.T) {
	l := &log.Memory{}
	logtest.Test(t, func(testing.TB) log.Log { return l })
}
