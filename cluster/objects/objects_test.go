package objects_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toold/toold/cluster/natstest"
	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/s3test"
)

func TestStores(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	bucket, err := objects.Bucket(t.Context(), js, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := objects.Bucket(t.Context(), js, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	one, err := objects.OpenS3(t.Context(), s3test.Start(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, stores := range map[string][2]objects.Store{"directory": dirs(t), "NATS": {bucket, again}, "S3": {one, one}} {
		t.Run(name, func(t *testing.T) { testStore(t, stores[0], stores[1]) })
	}
}

func dirs(t *testing.T) [2]objects.Store {
	dir := objects.Dir(t.TempDir())
	return [2]objects.Store{dir, dir}
}

// testStore writes through one store and reads through another one of the same place.
func testStore(t *testing.T, s, other objects.Store) {
	get := func(name string) string {
		t.Helper()
		r, err := other.Get(t.Context(), name)
		if err != nil {
			return err.Error()
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	large := strings.Repeat("large ", 1<<20)
	for _, content := range []string{"first", "", large, "last"} { // each in the place of the one before
		if err := s.Put(t.Context(), "a/b.c", strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if got := get("a/b.c"); got != content {
			t.Errorf("%d bytes came back, want %d", len(got), len(content))
		}
	}
	broken := errors.New("broken")
	if err := s.Put(t.Context(), "a/b.c", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))); err == nil {
		t.Error("an object was stored that could not be read")
	}
	if got := get("a/b.c"); got != "last" {
		t.Errorf("after a failed Put the object holds %q", got)
	}
	for range 2 {
		if err := s.Delete(t.Context(), "a/b.c"); err != nil {
			t.Error(err)
		}
	}
	if _, err := other.Get(t.Context(), "a/b.c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted object: %v", err)
	}
	list := func(store objects.Store, prefix string) (names []string) {
		for name, err := range store.List(t.Context(), prefix) {
			if err != nil {
				t.Error(err)
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	if names := list(s, "a/"); len(names) > 0 {
		t.Errorf("%q are listed of nothing", names)
	}
	for _, name := range []string{"a/b/1", "a/b/2", "ab/3"} {
		if err := s.Put(t.Context(), name, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	if names := list(other, "a/"); !slices.Equal(names, []string{"a/b/1", "a/b/2"}) {
		t.Errorf("%q are listed", names)
	}
	part := objects.Below(other, "a/")
	if names := list(part, "b/"); !slices.Equal(names, []string{"b/1", "b/2"}) {
		t.Errorf("%q are listed of a part", names)
	}
	if err := part.Delete(t.Context(), "b/1"); err != nil || get("a/b/1") == "x" || get("a/b/2") != "x" {
		t.Errorf("a part deletes something else, %v", err)
	}
	data := []byte("payload")
	blobs := objects.Blobs{Store: s, Prefix: "payloads/"}
	if err := blobs.Put(t.Context(), sha256.Sum256(data), data); err != nil {
		t.Fatal(err)
	}
	if got, err := blobs.Get(t.Context(), sha256.Sum256(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the blob is %q, %v", got, err)
	}
}
