package web

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/net/egress"
)

func packed(t testing.TB, text string, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(w, text)
	if closed := w.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return out.Bytes()
}

var packers = map[string]func(io.Writer) (io.WriteCloser, error){
	"gzip":    func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"deflate": func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil },
	"Deflate": func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) },
}

func get(t testing.TB, limits Limits, handler http.HandlerFunc) (*Answer, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := Client{Limits: limits, Agent: "test"}
	return c.Get(t.Context(), egress.Policy{Allowed: []string{"127.0.0.1"}}, target, nil, func(int64, int64) {})
}

func TestPacked(t *testing.T) {
	limits := Limits{Connect: time.Minute, Header: time.Minute, Idle: time.Minute, Bytes: 1000}
	for coding, open := range packers {
		for text, cut := range map[string]bool{"": false, "words": false, string(bytes.Repeat([]byte("a"), 1000)): false, string(bytes.Repeat([]byte("a"), 1001)): true} {
			answer, err := get(t, limits, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", coding)
				_, _ = w.Write(packed(t, text, open))
			})
			if err != nil || answer.Cut != cut || string(answer.Body) != text[:min(len(text), 1000)] {
				t.Errorf("%s of %d bytes: %+v, %v", coding, len(text), answer, err)
			}
		}
	}
	answer, err := get(t, limits, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") })
	if err != nil || len(answer.Body) > 0 {
		t.Errorf("nothing at all: %+v, %v", answer, err)
	}
}

// Whatever a body is, it comes to an end, within what is asked for.
func FuzzUnpack(f *testing.F) {
	for coding, open := range packers {
		f.Add(coding, packed(f, "words and words and words", open))
	}
	f.Add("identity", []byte("words"))
	f.Add("br", []byte{0x0b, 0x02})
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		from, err := unpacked(http.Header{"Content-Encoding": {coding}}, bytes.NewReader(body))
		if err != nil {
			_ = fault.From(err)
			return
		}
		if n, _ := io.Copy(io.Discard, io.LimitReader(from, 1<<20)); n > 1<<20 {
			t.Errorf("%d bytes", n)
		}
	})
}
