// Package s3test runs a server that speaks S3 by TLS inside a test. It accepts the
// credentials of this package only.
package s3test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// What the server accepts. It compares the key, not the signature.
const (
	Key    = "test-key"
	Secret = "test-secret"
	Bucket = "toold"
)

// A Server keeps its objects in memory.
type Server struct {
	// URL is that of the server's one bucket.
	URL string
	// Before answers a request instead of the server if it returns true. Nil: the server answers all. It is set before the server is used.
	Before func(http.ResponseWriter, *http.Request) bool

	backend *s3mem.Backend
}

// Start returns a server on a free port of loopback, which ends with the test, and puts its credentials and its certificate
// into the environment.
func Start(t testing.TB) *Server {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", Secret)
	s := &Server{backend: s3mem.New()}
	if err := s.backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	inner := gofakes3.New(s.backend, gofakes3.WithoutVersioning()).Server()
	outer := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.Header.Get("Authorization"), "Credential="+Key+"/"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>InvalidAccessKeyId</Code><Message>The key is not known.</Message></Error>`))
		case s.Before != nil && s.Before(w, r):
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(outer.Close)
	certificate := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: outer.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", certificate)
	s.URL = outer.URL + "/" + Bucket
	return s
}

// Names returns the names of all objects.
func (s *Server) Names(t testing.TB) (names []string) {
	t.Helper()
	list, err := s.backend.ListBucket(Bucket, &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range list.Contents {
		names = append(names, object.Key)
	}
	return names
}
