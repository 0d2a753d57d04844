package node

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/objects"
)

// TestOneDirectoryOneNode: a second node does not begin in a directory that a node uses, and begins when that one has ended.
func TestOneDirectoryOneNode(t *testing.T) {
	dir, err := os.MkdirTemp("", "node") // a node's directory has a short name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := Config{Name: "a", Dir: dir, Program: "/bin/false", Log: &log.Memory{}, Objects: objects.Dir(t.TempDir()), Logger: zap.NewNop()}
	first, err := claim(config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(config)
	if used, is := errors.AsType[*InUseError](err); !is || used.Dir == "" || !strings.Contains(err.Error(), "another node uses the directory") {
		t.Errorf("the error is %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(config); err == nil || errors.As(err, new(*InUseError)) {
		t.Errorf("the error of a program that cannot run is %v", err)
	}
	again, err := claim(config.Dir) // which Open has left
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
