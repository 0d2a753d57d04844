// The token file: which clients may connect over TCP, one "NAME TOKEN" a line.

package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a token file, ours. The shortest token has 120 bits in base64, more than a word that a person makes up.
const (
	tokenLeast    = 20
	tokenMost     = 512
	mostTokens    = 1000
	tokenFileMost = 1 << 20 // bytes
	// tokenSettled is how long after a change the file is read again each time, because two changes within one tick of the
	// file system's clock look the same.
	tokenSettled = time.Second
)

// firstToken is the name of the token in a file that the daemon makes.
const firstToken = "default"

var tokenName = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)

// A TokenFileError is why a token file is not used. It contains no text of the file, only the
// line's number.
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

// A token is kept as its hash.
type token struct {
	name string
	hash [sha256.Size]byte
}

// A tokenFile holds the tokens of a file as it is at the moment. Its methods are safe for concurrent use.
type tokenFile struct {
	path    string
	replace func([]token) // called with the file's tokens when they have changed

	mu     sync.Mutex // guards the rest
	known  []token    // never modified
	broken error      // why the file cannot be used
	stat   unix.Stat_t
	read   time.Time
}

// OpenTokens returns what tells whether a secret is one of the tokens of the file at path, as the file is at that moment. The error
// is a [*TokenFileError] if the file cannot be used; no token is valid then. A file that does not exist is made with one fresh token;
// its first line says whose tokens they are, such as "Who may read metrics".
// What is returned is safe for concurrent use.
func OpenTokens(path, whose string) (admit func(secret string) (bool, error), err error) {
	f, err := openTokens(path, whose, func([]token) {})
	if err != nil {
		return nil, err
	}
	return func(secret string) (bool, error) {
		found, err := f.find(secret)
		return found.name != "", err
	}, nil
}

// openTokens reads the file at path. If it does not exist, it is made with one fresh token.
func openTokens(path, whose string, replace func([]token)) (*tokenFile, error) {
	if err := makeTokens(path, whose); err != nil {
		return nil, err
	}
	f := &tokenFile{path: path, replace: replace}
	f.refresh()
	return f, f.broken
}

// makeTokens makes the file unless it exists.
func makeTokens(path, whose string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	_, err = fmt.Fprintf(file, "# %s: NAME TOKEN, one a line. Changes count at once.\n%s %s\n", whose, firstToken, base64.RawURLEncoding.EncodeToString(secret))
	return errors.Join(err, file.Sync(), file.Close())
}

// find returns the token with that secret, one without a name if there is none. It takes as long for an
// unknown secret as for a known one. The error is why the file cannot be used.
func (f *tokenFile) find(secret string) (found token, err error) {
	tokens, err := f.tokens()
	if err != nil {
		return token{}, err
	}
	hash, at := sha256.Sum256([]byte(secret)), -1
	for i := range tokens {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], tokens[i].hash[:]), i, at)
	}
	if at >= 0 {
		found = tokens[at]
	}
	return found, nil
}

// tokens returns the tokens that the file holds now.
func (f *tokenFile) tokens() ([]token, error) {
	f.mu.Lock()
	before := f.known
	var now unix.Stat_t
	err := unix.Stat(f.path, &now)
	now.Atim = f.stat.Atim // reading changes it
	if err != nil || now != f.stat || f.read.Sub(time.Unix(now.Ctim.Unix())) < tokenSettled {
		f.refresh()
	}
	known, broken := f.known, f.broken
	f.mu.Unlock()
	if !slices.Equal(before, known) {
		f.replace(known)
	}
	return known, broken
}

// refresh reads the file. If the file cannot be used, no token is valid, not even those of before: the user may have been removing
// one of them.
func (f *tokenFile) refresh() {
	f.read = time.Now()
	var text []byte
	f.known = nil
	if text, f.stat, f.broken = readSecret(f.path); f.broken == nil {
		f.known, f.broken = parseTokens(f.path, text)
	}
}

// readSecret reads a file that no other user can read.
func readSecret(path string) (text []byte, stat unix.Stat_t, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, stat, err
	}
	defer file.Close()
	wrong := func(format string, args ...any) error {
		return &TokenFileError{Path: path, Why: fmt.Sprintf(format, args...)}
	}
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, stat, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, stat, wrong("is not a regular file")
	case int(stat.Uid) != os.Getuid() && stat.Uid != 0:
		return nil, stat, wrong("belongs to user %d; toold does not use it", stat.Uid)
	case stat.Mode&0o077 != 0:
		return nil, stat, wrong("can be read by other users (mode %04o); run `chmod 600 %s`", stat.Mode&0o777, path)
	}
	text, err = io.ReadAll(io.LimitReader(file, tokenFileMost+1))
	if err == nil && len(text) > tokenFileMost {
		err = wrong("has more than %d bytes", tokenFileMost)
	}
	return text, stat, err
}

// parseTokens reads the lines of a token file. A name may have several tokens, so that one can take another's place.
func parseTokens(path string, text []byte) (tokens []token, err error) {
	taken := map[[sha256.Size]byte]bool{}
	for number, words := range tokenLines(text) {
		if why := wrongLine(words); why != "" {
			return nil, &TokenFileError{Path: path, Line: number, Why: why}
		}
		hash := sha256.Sum256(words[1])
		if taken[hash] {
			return nil, &TokenFileError{Path: path, Line: number, Why: "the token stands in an earlier line too; each name has tokens of its own"}
		}
		taken[hash] = true
		tokens = append(tokens, token{name: string(words[0]), hash: hash})
	}
	if len(tokens) > mostTokens {
		return nil, &TokenFileError{Path: path, Why: fmt.Sprintf("has %d tokens, and at most %d are taken", len(tokens), mostTokens)}
	}
	return tokens, nil
}

// tokenLines yields the words of each line that is neither empty nor a comment, with its number.
func tokenLines(text []byte) iter.Seq2[int, [][]byte] {
	return func(yield func(int, [][]byte) bool) {
		number := 0
		for line := range bytes.Lines(text) {
			number++
			if words := bytes.Fields(line); len(words) > 0 && words[0][0] != '#' && !yield(number, words) {
				return
			}
		}
	}
}

// wrongLine returns what is wrong with the words of a line; empty: nothing. The text repeats no word, since any may be a token.
func wrongLine(words [][]byte) string {
	switch {
	case len(words) != 2:
		return fmt.Sprintf("it has %d words; write NAME TOKEN", len(words))
	case !tokenName.Match(words[0]):
		return "a name is 1 to 64 letters, digits and . _ @ -; write NAME TOKEN"
	}
	return wrongToken(words[1])
}

func wrongToken(secret []byte) string {
	if len(secret) < tokenLeast || len(secret) > tokenMost {
		return fmt.Sprintf("the token has %d characters; %d to %d are taken: `openssl rand -base64 32` makes one", len(secret), tokenLeast, tokenMost)
	}
	if bytes.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "the token has a character that cannot be sent; take letters, digits and signs of ASCII"
	}
	return ""
}

// ReadToken returns the first token of a file, for a client to send. The file is the daemon's token file, or holds a token without
// a name. An error if other users can read it.
func ReadToken(path string) (string, error) {
	text, _, err := readSecret(path)
	if err != nil {
		return "", err
	}
	for number, words := range tokenLines(text) {
		secret := words[len(words)-1]
		if why := wrongToken(secret); why != "" || len(words) > 2 {
			return "", &TokenFileError{Path: path, Line: number, Why: "it is neither TOKEN nor NAME TOKEN"}
		}
		return string(secret), nil
	}
	return "", &TokenFileError{Path: path, Why: "holds no token"}
}
