// Compressed bodies. The reader limits how much is decompressed.

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

// unpacked returns the decompressed body. Only gzip is requested; some servers send deflate all the
// same, with a zlib header or without.
func unpacked(header http.Header, body io.Reader) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ",")))
	switch coding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		begun := bufio.NewReader(body)
		if _, err := begun.Peek(1); err == io.EOF {
			return begun, nil // not compressed
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
	return nil, fault.Failedf("bad_response", "The server has compressed its response as %.40q, which was not requested and is not supported.", coding)
}
