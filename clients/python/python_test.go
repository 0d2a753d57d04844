// Package python_test installs the Python library as its README says, and runs its tests against the real daemon.
package python_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toold/toold/clients/clienttest"
)

// debian is the interpreter whose packages the library works with.
const debian = "/usr/bin/python3"

func TestPython(t *testing.T) {
	if exec.Command(debian, "-c", "import grpc.aio, google.protobuf, setuptools, wheel, venv, ensurepip").Run() != nil {
		clienttest.Lacking(t, "Debian's python3-grpcio, python3-protobuf, python3-venv, python3-setuptools and python3-wheel")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "source") // installing writes beside the source
	run(t, "cp", "-r", ".", source)
	venv := filepath.Join(dir, "venv")
	run(t, debian, "-m", "venv", "--system-site-packages", venv)
	run(t, filepath.Join(venv, "bin/pip"), "install", "-q", "--no-build-isolation", "--no-index", source)
	if err := clienttest.Build(filepath.Join(venv, "bin/toold")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(venv, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	tests, err := filepath.Abs("tests/test_toold.py")
	if err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(venv, "bin/python"), tests)
}

// TestStubs: the committed stubs are what the contract gives. Other versions of protoc write other text, so only what they describe is
// compared.
func TestStubs(t *testing.T) {
	for _, program := range []string{"protoc", "grpc_python_plugin"} {
		if _, err := exec.LookPath(program); err != nil {
			clienttest.Lacking(t, "protoc and its Python plugin (Debian: protobuf-compiler, protobuf-compiler-grpc, libprotobuf-dev)")
		}
	}
	if exec.Command(debian, "-c", "import google.protobuf").Run() != nil {
		clienttest.Lacking(t, "Debian's python3-protobuf")
	}
	dir := t.TempDir()
	run(t, "mkdir", "-p", dir+"/clients")
	run(t, "cp", "-r", ".", dir+"/clients/python")
	run(t, "cp", "-r", "../../proto", dir+"/proto")
	run(t, dir+"/clients/python/generate")
	const described = `import sys; sys.path.insert(0, sys.argv[1])
from toold.v1 import daemon_pb2, event_pb2, options_pb2, session_pb2, tool_pb2
from toold import _status_pb2
for module in (daemon_pb2, event_pb2, options_pb2, session_pb2, tool_pb2, _status_pb2):
    sys.stdout.buffer.write(module.DESCRIPTOR.serialized_pb)`
	committed, err := exec.Command(debian, "-B", "-c", described, "src").Output()
	if err != nil {
		t.Fatal(err)
	}
	generated, err := exec.Command(debian, "-B", "-c", described, dir+"/clients/python/src").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, generated) {
		t.Error("the stubs are not what proto/ gives: run clients/python/generate and commit")
	}
}

// run runs a program, and fails the test with what it printed if it fails.
func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if output, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, output)
	}
}
