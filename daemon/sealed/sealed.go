// Package sealed keeps bytes out of memory, in files that only this process can read: each is encrypted with a key
// that exists nowhere else. It does not know what the bytes are.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A Box is one file of sealed bytes. It does not change, and is safe for concurrent use.
type Box struct {
	path string
	key  [32]byte
}

// Write seals bytes in a new file in dir. It makes that directory if needed, and nothing further up. The file takes as
// many bytes and a few more.
func Write(dir string, plain []byte) (*Box, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	b := &Box{}
	_, _ = rand.Read(b.key[:]) // which never fails
	b.path = filepath.Join(dir, rand.Text())
	f, err := os.OpenFile(b.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(b.cipher().Seal(nil, nonce, plain, nil))
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		b.Remove()
		return nil, err
	}
	return b, nil
}

// nonce may be the same for all, since no key seals twice.
var nonce = make([]byte, 12)

func (b *Box) cipher() cipher.AEAD {
	block, err := aes.NewCipher(b.key[:])
	if err != nil {
		panic("BUG: a key that is none: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("BUG: a cipher that is none: " + err.Error())
	}
	return gcm
}

// Read returns the bytes. The error is that the file is gone, cannot be read, or was changed.
func (b *Box) Read() ([]byte, error) {
	text, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	plain, err := b.cipher().Open(nil, nonce, text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s was changed: %w", b.path, err)
	}
	return plain, nil
}

// Remove removes the file. One that is gone already is no concern.
func (b *Box) Remove() { _ = os.Remove(b.path) }
