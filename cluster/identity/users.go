// Users at a gateway: their tokens and certificates.

package identity

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/toold/toold/daemon/apierror"
)

const (
	maxTokenFile  = 64 << 20 // bytes; about 700,000 users
	maxCommonName = 256      // bytes
	// settled is how long after a change the file is read again at each request,
	// because two changes within one tick of the file system's clock look alike.
	settled = time.Second
)

// Users authenticates users by a file with a line "NAME HASH" for each token,
// where HASH is the SHA-256 of the token in hexadecimal. A name may have several
// tokens. Lines that begin with # are comments; one that cannot be used lets in
// no user. The file is read again when it has changed. Its methods are safe for
// concurrent use.
type Users struct {
	path   string
	report func(error)

	mu       sync.Mutex                   // guards the rest
	names    map[[sha256.Size]byte]string // by the token's hash; never modified
	broken   error                        // why the file cannot be used
	reported string                       // what was reported last
	stat     os.FileInfo
	read     time.Time
}

// A TokenFileError is why a token file is not used.
type TokenFileError struct {
	Path string
	Line int // 0: it is about the whole file
	Why  string
}

func (e *TokenFileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("the token file %s, line %d: %s", e.Path, e.Line, e.Why)
	}
	return fmt.Sprintf("the token file %s %s", e.Path, e.Why)
}

// OpenUsers reads a token file. An empty path: no token is valid. The error is a
// *TokenFileError if the file is wrong.
//
// report is called with a *TokenFileError for each line that cannot be used,
// joined, and later with why the file as a whole cannot be, once each time that
// this changes. It must not call the Users. Nil: it is not reported.
func OpenUsers(path string, report func(error)) (*Users, error) {
	u := &Users{path: path, report: report}
	if path == "" {
		return u, nil
	}
	wrong := u.refresh()
	if u.broken == nil {
		u.reportOnce(wrong)
	}
	return u, u.broken
}

// errName is why a name cannot be that of a user.
var errName = errors.New("a name is 1 to 64 letters, digits and . _ @ -")

// NewToken returns a token for a user, and the line of the token file for it.
func NewToken(name string) (token, line string, err error) {
	if !validUser(name) {
		return "", "", fmt.Errorf("%q cannot be the name of a user: %w", name, errName)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	token = base64.RawURLEncoding.EncodeToString(secret)
	hash := sha256.Sum256([]byte(token))
	return token, name + " " + hex.EncodeToString(hash[:]) + "\n", nil
}

// Authenticate returns the principal that sent a request: "certificate:COMMON
// NAME" if the connection has a user's certificate, else "token:NAME". The error
// is an *apierror.Error.
func (u *Users) Authenticate(ctx context.Context, header metadata.MD) (string, error) {
	if from, ok := grpcpeer.FromContext(ctx); ok {
		if info, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
			return named(info.State.VerifiedChains[0][0].Subject.CommonName)
		}
	}
	sent := header.Get("authorization")
	if len(sent) == 0 {
		return "", apierror.New(codes.Unauthenticated, "no_token", "The request has no token. Send one as the metadata \"authorization: Bearer TOKEN\".")
	}
	kind, secret, _ := strings.Cut(sent[0], " ")
	if len(sent) > 1 || !strings.EqualFold(kind, "bearer") {
		return "", apierror.New(codes.Unauthenticated, "no_token", "The metadata authorization is not one \"Bearer TOKEN\".")
	}
	name, err := u.find(secret)
	if err != nil {
		refused := apierror.New(codes.Unauthenticated, "tokens_unusable", "The gateway's token file cannot be used as it is now. The gateway's log says why.")
		refused.Cause = err
		return "", refused
	}
	if name == "" {
		return "", apierror.New(codes.Unauthenticated, "wrong_token", "The token is not in the gateway's token file.")
	}
	return "token:" + name, nil
}

func named(name string) (string, error) {
	if name == "" || len(name) > maxCommonName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", apierror.New(codes.Unauthenticated, "wrong_certificate", "The client's certificate has no common name that could name a principal.")
	}
	return "certificate:" + name, nil
}

// find returns the user with the token; empty: there is none. Looking up a hash
// takes no time that would tell anything about a token.
func (u *Users) find(secret string) (string, error) {
	hash := sha256.Sum256([]byte(secret))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.path != "" && u.changed() {
		u.reportOnce(u.refresh())
	}
	return u.names[hash], u.broken
}

func (u *Users) changed() bool {
	now, err := os.Stat(u.path)
	return err != nil || u.stat == nil || !os.SameFile(now, u.stat) || now.Size() != u.stat.Size() ||
		!now.ModTime().Equal(u.stat.ModTime()) || now.Mode() != u.stat.Mode() || u.read.Sub(now.ModTime()) < settled
}

// refresh reads the file. If it cannot be used, no token is valid, not even those
// of before: one of them may have been meant to go. It returns what is wrong with
// the file or with lines of it.
func (u *Users) refresh() (wrong error) {
	u.read, u.stat, u.names = time.Now(), nil, nil
	var text []byte
	if text, u.stat, u.broken = readTokens(u.path); u.broken != nil {
		return u.broken
	}
	u.names, wrong = parseTokens(u.path, text)
	return wrong
}

// reportOnce reports what is wrong, unless it was reported last.
func (u *Users) reportOnce(wrong error) {
	text := ""
	if wrong != nil {
		text = wrong.Error()
	}
	if text != u.reported && wrong != nil && u.report != nil {
		u.report(wrong)
	}
	u.reported = text
}

// readTokens reads a file that no other user can write.
func readTokens(path string) ([]byte, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	stat, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !stat.Mode().IsRegular() {
		return nil, stat, &TokenFileError{Path: path, Why: "is not a regular file"}
	}
	if stat.Mode().Perm()&0o022 != 0 {
		return nil, stat, &TokenFileError{Path: path, Why: fmt.Sprintf("can be written by other users (mode %04o); run `chmod go-w %s`", stat.Mode().Perm(), path)}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile+1))
	if err == nil && len(text) > maxTokenFile {
		err = &TokenFileError{Path: path, Why: fmt.Sprintf("has more than %d bytes", maxTokenFile)}
	}
	return text, stat, err
}

// mostWrong is how many lines that cannot be used are reported.
const mostWrong = 10

// parseTokens returns the users of the lines that can be used, and an error that
// names those that cannot.
func parseTokens(path string, text []byte) (names map[[sha256.Size]byte]string, wrong error) {
	names = map[[sha256.Size]byte]string{}
	number, count := 0, 0
	for line := range bytes.Lines(text) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		name, hash, err := parseToken(line)
		if err == nil && names[hash] != "" {
			err = errors.New("the token stands in an earlier line too")
		}
		if err == nil {
			names[hash] = name
		} else if count++; count <= mostWrong {
			wrong = errors.Join(wrong, &TokenFileError{Path: path, Line: number, Why: err.Error()})
		}
	}
	if count > mostWrong {
		wrong = errors.Join(wrong, &TokenFileError{Path: path, Why: fmt.Sprintf("has %d more lines that cannot be used", count-mostWrong)})
	}
	return names, wrong
}

// parseToken reads one line. Its errors repeat nothing of it, since a token may
// stand there by mistake.
func parseToken(line []byte) (name string, hash [sha256.Size]byte, err error) {
	words := bytes.Fields(line)
	if len(words) != 2 {
		return "", hash, fmt.Errorf("it has %d words; write NAME HASH", len(words))
	}
	if name = string(words[0]); !validUser(name) {
		return "", hash, errName
	}
	if n, err := hex.Decode(hash[:], words[1][:min(len(words[1]), 2*len(hash))]); err != nil || n != len(hash) || len(words[1]) != 2*n {
		return "", hash, errors.New("the second word is not a SHA-256 in hexadecimal")
	}
	return name, hash, nil
}

func validUser(name string) bool {
	return validName.MatchString(strings.ReplaceAll(name, "@", "_"))
}
