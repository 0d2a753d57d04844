// Package snapshot keeps copies of directories in an object store: each is one
// compressed archive, named by the digest of its bytes, so that an unchanged
// directory is stored once.
//
// It does not know when a directory is at rest. What changes while it is
// packed is in the snapshot in some state between.
package snapshot

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/toold/toold/cluster/objects"
)

// prefix is what the names of snapshots begin with in the object store.
const prefix = "snapshots/"

// Name returns the object of a snapshot.
func Name(reference string) string { return prefix + reference }

// Save stores directories, each under a name of its own, and returns the reference for Load. They are paths below base, and
// nothing outside of base is read, whatever links lead there. A directory that does not exist is empty. Sockets, devices
// and pipes are left out; owners are not kept.
func Save(ctx context.Context, store objects.Store, base string, dirs map[string]string) (reference string, err error) {
	// The name is known when all is packed, so the archive goes to a file first.
	spool, err := os.CreateTemp("", "toold-snapshot-*")
	if err != nil {
		return "", err
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil { // it lives as long as it is open
		return "", err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum := sha256.New()
	if err := pack(ctx, io.MultiWriter(spool, sum), root, dirs); err != nil {
		return "", fmt.Errorf("the files cannot be packed: %w", err)
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	reference = hex.EncodeToString(sum.Sum(nil))
	if there, err := store.Get(ctx, Name(reference)); err == nil {
		return reference, there.Close()
	}
	return reference, store.Put(ctx, Name(reference), spool)
}

// Load replaces directories below base by those of a snapshot. A directory that the snapshot does not have becomes empty.
// After an error their content is undefined.
func Load(ctx context.Context, store objects.Store, reference, base string, dirs map[string]string) error {
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range dirs {
		if err := Empty(root, dir); err != nil {
			return err
		}
	}
	stored, err := store.Get(ctx, Name(reference))
	if err != nil {
		return err
	}
	defer stored.Close()
	sum := sha256.New()
	if err := unpack(io.TeeReader(stored, sum), root, dirs); err != nil {
		return fmt.Errorf("the snapshot %s cannot be unpacked: %w", reference, err)
	}
	return compare(sum, stored, reference)
}

// compare reads what unpack has left of the archive, and compares the digest.
func compare(sum hash.Hash, rest io.Reader, reference string) error {
	if _, err := io.Copy(sum, rest); err != nil {
		return err
	}
	if found := hex.EncodeToString(sum.Sum(nil)); found != reference {
		return fmt.Errorf("the object store has other bytes for the snapshot %s: %s", reference, found)
	}
	return nil
}

// Delete removes a snapshot.
func Delete(ctx context.Context, store objects.Store, reference string) error {
	return store.Delete(ctx, Name(reference))
}

// Empty makes a directory below root, with nothing in it. What is in its place, or on the way to it, and is not a directory
// is removed, so that no link leads elsewhere.
func Empty(root *os.Root, dir string) error {
	for parent := dir; parent != "."; parent = filepath.Dir(parent) {
		if info, err := root.Lstat(parent); err == nil && !info.IsDir() {
			if err := root.Remove(parent); err != nil {
				return err
			}
		}
	}
	if root.RemoveAll(dir) != nil {
		// directories without permission to write, as package managers leave them
		open(root, dir)
		if err := root.RemoveAll(dir); err != nil {
			return err
		}
	}
	return root.MkdirAll(dir, 0o700)
}

// open makes a directory and those below it writable for their owner, as far as that works.
func open(root *os.Root, dir string) {
	if root.Chmod(dir, 0o700) != nil {
		return
	}
	entries, _ := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	for _, entry := range entries {
		if entry.IsDir() {
			open(root, filepath.Join(dir, entry.Name()))
		}
	}
}

// pack writes the archive. The same files give the same bytes.
func pack(ctx context.Context, w io.Writer, base *os.Root, dirs map[string]string) error {
	compressed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		root, failed := base.OpenRoot(dirs[name])
		if errors.Is(failed, fs.ErrNotExist) {
			continue
		}
		if failed == nil {
			p := packer{ctx: ctx, archive: archive, root: root, name: name, links: map[[2]uint64]string{}}
			failed = errors.Join(p.walk("."), root.Close())
		}
		err = errors.Join(err, failed)
	}
	return errors.Join(err, archive.Close(), compressed.Close())
}

// A packer writes one directory to an archive.
type packer struct {
	ctx     context.Context
	archive *tar.Writer
	root    *os.Root
	name    string
	links   map[[2]uint64]string // files with several names: the first one, by device and inode
}

// walk adds a file or directory and what is below it. What is removed meanwhile is left out.
func (p *packer) walk(path string) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	info, err := p.root.Lstat(path)
	if err == nil {
		err = p.add(path, info)
	}
	if err == nil && info.IsDir() {
		err = p.walkDir(path, info)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (p *packer) walkDir(path string, info fs.FileInfo) error {
	defer p.permit(path, info, 0o500)()
	dir, err := p.root.Open(path)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := p.walk(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// permit adds permissions that the owner needs to read a file or directory, until the returned function is called.
func (p *packer) permit(path string, info fs.FileInfo, mode fs.FileMode) (restore func()) {
	if info.Mode()&mode == mode || p.root.Chmod(path, info.Mode().Perm()|mode) != nil {
		return func() {}
	}
	return func() { _ = p.root.Chmod(path, info.Mode()&modeBits) }
}

// modeBits are the bits of a mode that are kept.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func (p *packer) add(path string, info fs.FileInfo) (err error) {
	header := &tar.Header{
		Name: filepath.ToSlash(filepath.Join(p.name, path)), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX,
	}
	for bit, mode := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if info.Mode()&bit != 0 {
			header.Mode |= mode
		}
	}
	switch info.Mode().Type() {
	case 0:
		return p.addFile(path, header, info)
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case fs.ModeSymlink:
		header.Typeflag, header.ModTime = tar.TypeSymlink, time.Time{} // which unpack could not set
		if header.Linkname, err = p.root.Readlink(path); err != nil {
			return err
		}
	default:
		return nil
	}
	return p.archive.WriteHeader(header)
}

func (p *packer) addFile(path string, header *tar.Header, info fs.FileInfo) error {
	if s, is := info.Sys().(*syscall.Stat_t); is && s.Nlink > 1 {
		id := [2]uint64{uint64(s.Dev), s.Ino}
		if first, known := p.links[id]; known {
			header.Typeflag, header.Linkname = tar.TypeLink, first
			return p.archive.WriteHeader(header)
		}
		p.links[id] = header.Name
	}
	defer p.permit(path, info, 0o400)()
	f, err := p.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that has taken its place blocks nothing
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		return errors.Join(err, fmt.Errorf("%q was replaced while it was stored", path))
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := p.archive.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.Copy(p.archive, io.LimitReader(f, header.Size))
	if err == nil && n < header.Size { // it has become shorter meanwhile
		_, err = io.CopyN(p.archive, zeros{}, header.Size-n)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// unpack writes the files of an archive below the directories. Each is opened below its directory, so that no name and
// no link of the archive leads out of it.
func unpack(r io.Reader, base *os.Root, dirs map[string]string) error {
	plain, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer plain.Close()
	u := unpacker{roots: map[string]*os.Root{}, times: map[string][]*tar.Header{}}
	defer u.close()
	for name, dir := range dirs {
		if u.roots[name], err = base.OpenRoot(dir); err != nil {
			return err
		}
	}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		} else if err != nil {
			return err
		}
		if err := u.take(header, archive); err != nil {
			return fmt.Errorf("%q: %w", header.Name, err)
		}
	}
}

type unpacker struct {
	roots map[string]*os.Root
	times map[string][]*tar.Header // of directories, which are finished last
}

func (u *unpacker) close() {
	for _, root := range u.roots {
		_ = root.Close()
	}
}

// place returns where an entry belongs.
func (u *unpacker) place(name string) (root *os.Root, in, path string, err error) {
	in, path, _ = strings.Cut(strings.TrimSuffix(name, "/"), "/")
	if root = u.roots[in]; root == nil {
		return nil, "", "", errors.New("the archive has a directory that was not asked for")
	}
	return root, in, filepath.FromSlash(path), nil
}

func (u *unpacker) take(header *tar.Header, content io.Reader) error {
	root, in, path, err := u.place(header.Name)
	if err != nil {
		return err
	}
	if path == "" {
		path = "."
	}
	switch header.Typeflag {
	case tar.TypeDir:
		u.times[in] = append(u.times[in], header)
		if path == "." {
			return nil
		}
		return root.Mkdir(path, 0o700)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, path)
	case tar.TypeLink:
		_, _, target, err := u.place(header.Linkname)
		if err != nil {
			return err
		}
		return root.Link(target, path)
	case tar.TypeReg:
		f, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close(), u.dress(root, path, header))
	default:
		return fmt.Errorf("the archive has an entry of the type %q", header.Typeflag)
	}
}

// dress sets mode and time.
func (u *unpacker) dress(root *os.Root, path string, header *tar.Header) error {
	return errors.Join(root.Chmod(path, header.FileInfo().Mode()&modeBits), root.Chtimes(path, header.ModTime, header.ModTime))
}

// finish dresses the directories, the deepest first.
func (u *unpacker) finish() error {
	for in, headers := range u.times {
		for _, header := range slices.Backward(headers) {
			_, _, path, err := u.place(header.Name)
			if err != nil {
				return err
			}
			if path == "" {
				path = "."
			}
			if err := u.dress(u.roots[in], path, header); err != nil {
				return err
			}
		}
	}
	return nil
}
