package snapshot

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func archive(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var text bytes.Buffer
	compressed, err := zstd.NewWriter(&text)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(compressed)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func rootOf(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// TestNothingLeadsOut unpacks archives that want to write outside their directory.
func TestNothingLeadsOut(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, headers := range map[string][]*tar.Header{
		"dots":              {{Name: "files/../../outside", Typeflag: tar.TypeReg}},
		"another directory": {{Name: "other/file", Typeflag: tar.TypeReg}},
		"a link":            {{Name: "files/l", Typeflag: tar.TypeSymlink, Linkname: filepath.Dir(outside)}, {Name: "files/l/outside", Typeflag: tar.TypeReg}},
		"a second name":     {{Name: "files/l", Typeflag: tar.TypeLink, Linkname: "files/../../etc/passwd"}},
		"a device":          {{Name: "files/d", Typeflag: tar.TypeChar}},
	} {
		if err := unpack(bytes.NewReader(archive(t, headers...)), rootOf(t, t.TempDir()), map[string]string{"files": "."}); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Errorf("%s: it has written outside", name)
		}
	}
}

// FuzzUnpack: whatever an archive holds, nothing is written beside its directory, and nothing panics.
func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, &tar.Header{Name: "files/a/", Typeflag: tar.TypeDir}, &tar.Header{Name: "files/a/b", Typeflag: tar.TypeReg}, &tar.Header{Name: "files/l", Typeflag: tar.TypeSymlink, Linkname: "/"}))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		files := filepath.Join(dir, "files")
		if err := os.Mkdir(files, 0o700); err != nil {
			t.Fatal(err)
		}
		root := rootOf(t, dir)
		_ = unpack(bytes.NewReader(text), root, map[string]string{"files": "files"})
		_ = Empty(root, "files") // so that the test can remove it
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v beside the directory", entries, err)
		}
	})
}
