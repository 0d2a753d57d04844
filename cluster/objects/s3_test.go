package objects_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/toold/toold/cluster/objects"
	"github.com/toold/toold/cluster/s3test"
)

// part is the smallest that S3 allows.
const part = 5 << 20

// large returns bytes that need three parts.
func large() []byte {
	data := make([]byte, 2*part+1)
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(data); i += 1000 {
		data[i] = byte(random.Uint32())
	}
	return data
}

func openS3(t *testing.T, server *s3test.Server) objects.S3 {
	t.Helper()
	store, err := objects.OpenS3(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func read(t *testing.T, store objects.Store, name string) ([]byte, error) {
	t.Helper()
	r, err := store.Get(t.Context(), name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// TestS3LargeObjects: an object in parts comes back as it was, and one whose source or server fails in the middle
// leaves the one before it, and no parts.
func TestS3LargeObjects(t *testing.T) {
	server := s3test.Start(t)
	var parts, aborted atomic.Int32
	var failing atomic.Bool
	server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		query := r.URL.Query()
		switch {
		case r.Method == http.MethodDelete && query.Has("uploadId"):
			aborted.Add(1)
		case r.Method == http.MethodPut && query.Has("partNumber"):
			parts.Add(1)
			if failing.Load() && query.Get("partNumber") == "2" {
				w.WriteHeader(http.StatusForbidden) // which the client does not try again
				return true
			}
		}
		return false
	}
	store, data := openS3(t, server).InParts(part), large()
	if err := store.Put(t.Context(), "a/large", bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, store, "a/large"); err != nil || !bytes.Equal(got, data) || parts.Load() != 3 {
		t.Errorf("%d bytes came back of %d, in %d parts, %v", len(got), len(data), parts.Load(), err)
	}
	broken := errors.New("broken")
	if err := store.Put(t.Context(), "a/large", io.MultiReader(bytes.NewReader(data[:part+1]), iotest.ErrReader(broken))); !errors.Is(err, broken) || aborted.Load() != 1 {
		t.Errorf("a source that fails in the middle: %v, %d uploads aborted", err, aborted.Load())
	}
	failing.Store(true)
	if err := store.Put(t.Context(), "a/large", bytes.NewReader(data[1:part+2])); err == nil || aborted.Load() != 2 {
		t.Errorf("a server that fails in the middle: %v, %d uploads aborted", err, aborted.Load())
	}
	if got, err := read(t, store, "a/large"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("afterwards %d bytes come back of %d, %v", len(got), len(data), err)
	}
}

// TestS3Failures: a failure that passes is tried again, an answer that breaks off is an error and not a shorter object, and only an object
// that is missing is reported as missing.
func TestS3Failures(t *testing.T) {
	server := s3test.Start(t)
	var busy, cut, puts atomic.Int32
	var gone atomic.Bool
	server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			puts.Add(1)
		}
		switch {
		case gone.Load():
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>NoSuchBucket</Code></Error>`)
			return true
		case r.Method == http.MethodPut && busy.Add(-1) >= 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case r.Method == http.MethodGet && cut.Add(-1) >= 0:
			w.Header().Set("Content-Length", "10")
			w.Header().Set("ETag", `"0123"`)
			w.Header().Set("Last-Modified", "Sat, 28 Nov 2026 20:00:00 GMT")
			_, _ = io.WriteString(w, "half")
			return true
		}
		return false
	}
	store := openS3(t, server)
	busy.Store(1)
	if err := store.Put(t.Context(), "a/object", strings.NewReader("whole text")); err != nil {
		t.Errorf("a server that is busy once: %v", err)
	}
	if puts.Load() != 2 {
		t.Errorf("%d requests stored a small object, of which one failed", puts.Load())
	}
	cut.Store(1)
	if got, err := read(t, store, "a/object"); err == nil {
		t.Errorf("an answer that breaks off is taken for %q", got)
	}
	if got, err := read(t, store, "a/object"); string(got) != "whole text" || err != nil {
		t.Errorf("then the object is %q, %v", got, err)
	}
	if _, err := read(t, store, "a/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing object: %v", err)
	}
	gone.Store(true)
	if _, err := read(t, store, "a/object"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an object of a bucket that is gone: %v", err)
	}
	for name, err := range store.List(t.Context(), "a/") {
		if err == nil {
			t.Errorf("%q is listed of a bucket that is gone", name)
		}
	}
}

// TestS3Listing lists more than the server returns at once.
func TestS3Listing(t *testing.T) {
	server := s3test.Start(t)
	var pages atomic.Int32
	server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if query := r.URL.Query(); query.Has("list-type") {
			pages.Add(1)
			query.Set("max-keys", "3")
			r.URL.RawQuery = query.Encode()
		}
		return false
	}
	store, want := openS3(t, server), []string{}
	for i := range 8 {
		want = append(want, fmt.Sprintf("w/payloads/%d", i))
		if err := store.Put(t.Context(), want[i], strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for name, err := range store.List(t.Context(), "w/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name)
	}
	if !slices.Equal(got, want) || pages.Load() != 3 {
		t.Errorf("%q are listed in %d answers", got, pages.Load())
	}
	for range store.List(t.Context(), "w/") {
		break // a list that is not read to its end
	}
}

// TestS3Unusable: what an operator has set wrongly is found at once, and named.
func TestS3Unusable(t *testing.T) {
	server := s3test.Start(t)
	unusable := func(address, want string) {
		t.Helper()
		if _, err := objects.OpenS3(t.Context(), address); !errors.Is(err, objects.ErrUnusable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", address, err, want)
		}
	}
	for _, address := range []string{"s3.example/toold", "https://s3.example", "https://s3.example/a/b", "ftp://s3.example/a", "https:///toold", "%"} {
		unusable(address, "is not https://HOST/BUCKET")
	}
	unusable(strings.TrimSuffix(server.URL, s3test.Bucket)+"other", "has no bucket other")
	store := openS3(t, server)
	t.Setenv("AWS_ACCESS_KEY_ID", "wrong")
	unusable(server.URL, "refuses the credentials")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	unusable(server.URL, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both in the environment")
	if err := store.Put(t.Context(), "a", strings.NewReader("")); err != nil {
		t.Errorf("a store that was opened before: %v", err)
	}
}
