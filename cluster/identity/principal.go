// The principal of one RPC, signed by the gateway that has authenticated it.

package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// principalLife is how long a signed principal is valid after it was signed. A
// stream may live longer: it is checked when the RPC begins.
const principalLife = 60 * time.Second

// maxSigned is the largest signed principal that is read, in bytes.
const maxSigned = 4 << 10

// signedFormat is the first byte of a signed principal.
const signedFormat = 1

// signatureContext keeps a signature of a principal from being one of anything
// else that the certificate's key signs.
const signatureContext = "toold-cluster principal 1\x00"

// Why a signed principal is refused.
var (
	ErrMalformed   = errors.New("the signed principal is malformed")
	ErrSignature   = errors.New("the principal was not signed by the peer")
	ErrExpired     = errors.New("the signed principal has expired")
	ErrOtherNode   = errors.New("the principal was signed for another node")
	ErrOtherMethod = errors.New("the principal was signed for another method")
)

// claims is what a gateway signs.
type claims struct {
	Principal string `json:"principal"`
	Node      string `json:"node"`
	Method    string `json:"method"`
	Expiry    int64  `json:"expiry"` // seconds since 1970
}

// SignPrincipal returns the principal, signed for one method of one node, for
// example "/toold.v1.ToolService/Execute". It is valid for 60 s from now on.
func (i *Identity) SignPrincipal(principal, node, method string, now time.Time) ([]byte, error) {
	text, err := json.Marshal(claims{principal, node, method, now.Add(principalLife).Unix()})
	if err != nil {
		return nil, err
	}
	key, err := i.signer()
	if err != nil {
		return nil, err
	}
	signature, err := key.Sign(rand.Reader, digest(text), crypto.SHA256)
	if err != nil {
		return nil, err
	}
	signed := binary.BigEndian.AppendUint16([]byte{signedFormat}, uint16(len(signature)))
	return append(append(signed, signature...), text...), nil
}

func digest(text []byte) []byte {
	sum := sha256.Sum256(append([]byte(signatureContext), text...))
	return sum[:]
}

// A Peer is the gateway or administrator at the other end of a connection, whose
// certificate was verified.
type Peer struct {
	Subject Subject

	key crypto.PublicKey
}

// VerifyPrincipal returns the principal for whom the peer calls a method of this
// node. The error is one of those of this package.
func (p Peer) VerifyPrincipal(signed []byte, node, method string, now time.Time) (string, error) {
	signature, text, err := split(signed)
	if err != nil {
		return "", err
	}
	key, ok := p.key.(*ecdsa.PublicKey)
	if !ok || !ecdsa.VerifyASN1(key, digest(text), signature) {
		return "", ErrSignature
	}
	var c claims
	if err := json.Unmarshal(text, &c); err != nil || c.Principal == "" {
		return "", ErrMalformed
	}
	switch {
	case c.Node != node:
		return "", fmt.Errorf("%w, %q", ErrOtherNode, c.Node)
	case c.Method != method:
		return "", fmt.Errorf("%w, %q", ErrOtherMethod, c.Method)
	case now.Unix() >= c.Expiry:
		return "", ErrExpired
	}
	return c.Principal, nil
}

// split returns the parts of a signed principal.
func split(signed []byte) (signature, text []byte, err error) {
	if len(signed) < 3 || len(signed) > maxSigned || signed[0] != signedFormat {
		return nil, nil, ErrMalformed
	}
	size, rest := int(binary.BigEndian.Uint16(signed[1:])), signed[3:]
	if size > len(rest) {
		return nil, nil, ErrMalformed
	}
	return rest[:size], rest[size:], nil
}
