// Codes and tokens: a code is for one page, once; a token is what the page gets for it, and what its requests carry.

package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"
	"time"
)

// How long a code and a token are good, and how many of each there may be; then the oldest is dropped. The times are part of the
// contract with users, the numbers are ours.
const (
	codeTime  = time.Minute
	tokenTime = 12 * time.Hour
	maxCodes  = 32
	maxTokens = 128
)

// A secret is kept as its hash.
type secret struct {
	hash    [sha256.Size]byte
	grant   Grant
	expires time.Time // by the monotonic clock
}

// tokens are the codes and tokens that are good.
type tokens struct {
	mu            sync.Mutex // guards the rest
	codes, tokens []secret   // the oldest first
}

func (t *tokens) code(grant Grant) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return add(&t.codes, grant, codeTime, maxCodes)
}

// trade makes a token of a code, which is good no more; empty: it is no code.
func (t *tokens) trade(code string) (token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := find(t.codes, code)
	if at < 0 {
		return ""
	}
	grant := t.codes[at].grant
	t.codes = slices.Delete(t.codes, at, at+1)
	return add(&t.tokens, grant, tokenTime, maxTokens)
}

// find returns what a token is for; ok is false if it is none.
func (t *tokens) find(token string) (grant Grant, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := find(t.tokens, token); at >= 0 {
		return t.tokens[at].grant, true
	}
	return Grant{}, false
}

// add makes a secret and keeps it.
func add(secrets *[]secret, grant Grant, good time.Duration, most int) string {
	text, now := rand.Text(), time.Now()
	kept := slices.DeleteFunc(*secrets, func(s secret) bool { return now.After(s.expires) })
	if len(kept) == most {
		kept = slices.Delete(kept, 0, 1)
	}
	*secrets = append(kept, secret{sha256.Sum256([]byte(text)), grant, now.Add(good)})
	return text
}

// find takes as long for an unknown secret as for a known one. It returns -1 if there is none, or it is not good any more.
func find(secrets []secret, text string) int {
	hash, at := sha256.Sum256([]byte(text)), -1
	for i := range secrets {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], secrets[i].hash[:]), i, at)
	}
	if at >= 0 && time.Now().After(secrets[at].expires) {
		return -1
	}
	return at
}
