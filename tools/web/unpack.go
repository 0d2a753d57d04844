// The encodings in which a body may be packed. How much may come out is the reader's to bound.

package web

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"

	"github.com/toold/toold/tools/fault"
)

// unpacked returns the body as it was before it was packed. Only gzip is asked for; some servers send deflate all the same,
// with a zlib header or without.
func unpacked(header http.Header, body io.Reader) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ",")))
	switch coding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		begun := bufio.NewReader(body)
		if _, err := begun.Peek(1); err == io.EOF {
			return begun, nil // nothing was packed
		}
		return gzip.NewReader(begun)
	case "deflate":
		begun := bufio.NewReader(body)
		first, _ := begun.Peek(2)
		if len(first) == 2 && first[0]&0x0f == 8 && (int(first[0])<<8|int(first[1]))%31 == 0 { // RFC 1950, 2.2
			return zlib.NewReader(begun)
		}
		return flate.NewReader(begun), nil
	}
	return nil, fault.Failedf("bad_response", "The server packs its answer as %.40q, which was not asked for and cannot be unpacked.", coding)
}
