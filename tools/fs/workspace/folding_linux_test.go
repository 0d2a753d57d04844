package workspace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"

	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/tooltest"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// Where several names lead to one file, each comes to the one that the directory holds, so that a rule about that meets
// them all. The file system is made here, and does what others do: takes upper and lower case for one, composed and
// decomposed characters, passes over what cannot be seen and over dots at the end, and has short names.
func TestFoldingFileSystem(t *testing.T) {
	t.Parallel()
	if !ownspace.Inside(t) {
		serveFolding(t)
		return
	}
	s := newSite(t)
	disk := s.root + "/disk"
	mount(t, disk, "fuse", "fd=3,rootmode=40000,user_id=0,group_id=0")
	if _, err := os.NewFile(4, "mounted").WriteString("."); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		".Env": ".Env", ".env": ".Env", ".ENV": ".Env", ".env.": ".Env", ".e\u200cnv": ".Env",
		"secret~1.txt": "Secret File.txt", "SECRET~1.TXT": "Secret File.txt",
		"\u00fcni": "U\u0308ni", "\u00dcNI": "U\u0308ni", "U\u0308ni": "U\u0308ni",
		"\u304c": "\u304b\u3099", "\u304b\u3099": "\u304b\u3099", // a letter without cases
		"123": "123", "123.": "123", "DIR/FILE": "Dir/File", "dir/../.ENV": ".Env",
	} {
		s.spells(t, disk+"/"+name, disk+"/"+want)
		if c, err := s.view().Look(disk + "/" + name); err != nil || string(c.Data) != want[strings.LastIndex(want, "/")+1:] {
			t.Errorf("%s holds %q (%v)", name, c.Data, err)
		}
	}
	e := tooltest.NewEditor(t)
	s.memory.SetBuffers(e.Buffers)
	e.Type(disk+"/.Env", "typed")
	for _, name := range []string{".Env", ".env", ".ENV", ".env.", ".e\u200cnv"} {
		if c, err := s.view().Look(disk + "/" + name); err != nil || string(c.Data) != "typed" {
			t.Errorf("%s, which is open in an editor, holds %q (%v)", name, c.Data, err)
		}
	}
	ws, err := workspace.Open([]string{disk + "/DIR"}, workspace.NewLocks())
	if err != nil || ws.Roots()[0] != disk+"/Dir" {
		t.Fatalf("roots %v (%v)", ws.Roots(), err)
	}
	s.admit(t, workspace.Places{Hidden: []string{disk + "/dIR"}})
	refused(t, s.view(), disk+"/dir/file", "hidden_path")
}

// spells checks that name comes to the real path want, opens that, and falls under a rule about it.
func (s *site) spells(t *testing.T, name, want string) {
	t.Helper()
	if p, err := s.ws.Resolve(s.root, name); err != nil || p.Real != want {
		t.Errorf("%s comes to %q (%v), want %q", name, p.Real, err, want)
	}
	f, err := s.view().Open(name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	} else {
		f.Close()
	}
	if _, err := s.barring(want).Open(name); code(err) != "rule_denied" {
		t.Errorf("%s with a rule about %s: %v", name, want, err)
	}
}

// serveFolding runs the test in a namespace and serves the file system that it mounts there.
func serveFolding(t *testing.T) {
	t.Helper()
	// Blocking, since this descriptor cannot be waited for before it is mounted.
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no file system can be made here: %v", err)
	}
	device := os.NewFile(uintptr(fd), "fuse")
	defer device.Close()
	mounted, sayMounted, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		defer mounted.Close()
		if n, _ := mounted.Read(make([]byte, 1)); n == 0 {
			served <- nil // it was never mounted
			return
		}
		served <- newFolding().serve(fd)
	}()
	inNamespace(t, device, sayMounted)
	sayMounted.Close()
	if err := <-served; err != nil {
		t.Errorf("serving: %v", err)
	}
}

// A folding is a read-only file system in the kernel's FUSE protocol, version 7.31: as much of it as the test needs.
type folding struct {
	nodes []foldingNode // by number, from 1
	alias map[string]string
}

// A foldingNode is a file, which holds its own name, or a directory.
type foldingNode struct {
	name   string
	parent uint64
	dir    bool
}

func newFolding() *folding {
	return &folding{
		nodes: []foldingNode{
			{},
			{dir: true},
			{".Env", 1, false},
			{"Secret File.txt", 1, false},
			{"U\u0308ni", 1, false},
			{"\u304b\u3099", 1, false},
			{"123", 1, false},
			{"Dir", 1, true},
			{"File", 7, false},
		},
		alias: map[string]string{"secret~1.txt": "secret file.txt"},
	}
}

// fold returns what two names of one file have in common.
func (f *folding) fold(name string) string {
	name = strings.TrimRight(strings.ReplaceAll(name, "\u200c", ""), ".")
	name = strings.ToLower(norm.NFC.String(name))
	if long, ok := f.alias[name]; ok {
		return long
	}
	return name
}

// serve answers the kernel until the file system is unmounted.
func (f *folding) serve(fd int) error {
	request := make([]byte, 1<<20)
	for {
		n, err := unix.Read(fd, request)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ENODEV):
			return nil
		case err != nil:
			return err
		}
		operation, unique := binary.NativeEndian.Uint32(request[4:]), binary.NativeEndian.Uint64(request[8:])
		body, code := f.answer(operation, binary.NativeEndian.Uint64(request[16:]), request[40:n])
		if code == silent {
			continue
		}
		reply := pack(uint32(16+len(body)), -int32(code), unique)
		if _, err := unix.Write(fd, append(reply, body...)); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

// silent marks a request that gets no answer.
const silent = unix.Errno(0xffff)

func (f *folding) answer(operation uint32, number uint64, body []byte) ([]byte, unix.Errno) {
	switch operation {
	case 1: // LOOKUP
		name, _, _ := bytes.Cut(body, []byte{0})
		for i, n := range f.nodes {
			if n.parent == number && f.fold(n.name) == f.fold(string(name)) {
				return append(pack(uint64(i), make([]byte, 32)), f.attributes(uint64(i))...), 0
			}
		}
		return nil, unix.ENOENT
	case 3: // GETATTR
		return append(make([]byte, 16), f.attributes(number)...), 0
	case 14, 27: // OPEN, OPENDIR
		return make([]byte, 16), 0
	case 15: // READ
		content := []byte(f.nodes[number].name)
		return content[min(len(content), int(binary.NativeEndian.Uint64(body[8:]))):], 0
	case 17: // STATFS
		return make([]byte, 80), 0
	case 18, 25, 29: // RELEASE, FLUSH, RELEASEDIR
		return nil, 0
	case 26: // INIT
		return pack(uint32(7), uint32(31), uint32(64<<10), make([]byte, 8), uint32(64<<10), make([]byte, 40)), 0
	case 28: // READDIR
		return f.list(number, binary.NativeEndian.Uint64(body[8:])), 0
	case 2, 36, 42: // FORGET, INTERRUPT, BATCH_FORGET
		return nil, silent
	}
	return nil, unix.ENOSYS
}

// attributes are those of one node, never to be kept by the kernel.
func (f *folding) attributes(number uint64) []byte {
	n := f.nodes[number]
	mode, size := uint32(unix.S_IFREG|0o644), uint64(len(n.name))
	if n.dir {
		mode, size = unix.S_IFDIR|0o755, 0
	}
	return pack(number, size, make([]byte, 44), mode, uint32(1), make([]byte, 20))
}

// list returns the entries of a directory from the one at offset on.
func (f *folding) list(number, offset uint64) (all []byte) {
	for i, n := range f.nodes {
		if n.parent == number && uint64(i) > offset {
			all = append(all, pack(uint64(i), uint64(i), uint32(len(n.name)), uint32(0), []byte(n.name))...)
			all = append(all, make([]byte, -len(all)&7)...)
		}
	}
	return all
}

// pack puts values behind each other as the kernel reads them.
func pack(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.NativeEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}
