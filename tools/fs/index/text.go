// Trigrams: which sequences of three bytes a text has, as a Bloom filter. A filter says "not there"
// with certainty, and "there" with few mistakes, which cost one file read.

package index

import (
	"bytes"
	"math/bits"
)

// A Text is what is known of the text of a file.
type Text struct {
	// Binary is set if the file is binary, see IsBinary. No trigrams are known of it.
	Binary bool
	opaque bool     // any text may be in it
	filter []uint64 // blocks of 8 words; a trigram has all of its bits in one block
}

// Text returns what is known of the file that has the stamp now; nil: nothing.
func (x *Index) Text(now Stamp) *Text {
	if r := x.find(now); r != nil {
		return r.text
	}
	return nil
}

// A Query is a list of texts, each as the hashes of its trigrams in lower case.
type Query [][]uint64

// NewQuery returns the query that Lacks answers for all of texts. It is nil if one of them has no
// trigram, so that no file can be left out.
func NewQuery(texts []string) Query {
	var q Query
	for _, text := range texts {
		var hashes []uint64
		trigrams([]byte(text), func(t uint32) { hashes = append(hashes, hash(t)) })
		if hashes == nil {
			return nil
		}
		q = append(q, hashes)
	}
	return q
}

// Lacks reports whether the text certainly has none of the query's texts, in lower or upper case of
// ASCII. A nil query is never lacking.
func (t *Text) Lacks(q Query) bool {
	if q == nil || t.opaque || t.Binary {
		return false
	}
	for _, hashes := range q {
		if t.hasAll(hashes) {
			return false
		}
	}
	return true
}

func (t *Text) hasAll(hashes []uint64) bool {
	if len(t.filter) == 0 {
		return false
	}
	for _, h := range hashes {
		block := t.block(h)
		for range bitsEach {
			if block[h>>6&7]&(1<<(h&63)) == 0 {
				return false
			}
			h >>= 9
		}
	}
	return true
}

// block returns the part of the filter that holds the bits of a hash.
func (t *Text) block(h uint64) []uint64 {
	n, _ := bits.Mul64(h, uint64(len(t.filter)/8))
	return t.filter[n*8 : n*8+8]
}

// A filter has bitsEach bits set and bitsFor bits of room for each trigram: three in a hundred
// trigrams that a text does not have seem to be there, and one in a thousand pairs of them.
const (
	bitsEach = 3
	bitsFor  = 8
)

// hash spreads a trigram over 64 bits: the highest choose the block, the lowest the bits.
func hash(trigram uint32) uint64 {
	h := (uint64(trigram) + 1) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

// trigrams calls found for each sequence of three bytes within a line, in lower case, as often as
// it occurs.
func trigrams(text []byte, found func(uint32)) {
	var t uint32
	length := 0
	for _, c := range text {
		if c == '\n' {
			length = 0
			continue
		}
		t = (t<<8 | uint32(lower[c])) & 0xffffff
		if length++; length >= 3 {
			found(t)
		}
	}
}

var lower = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// A counter makes filters, one after another, in the same memory.
type counter struct {
	seen  []uint64 // a bit for each trigram
	found []uint32 // those that are set
}

// text returns what is to be remembered of the text of a file.
func (c *counter) text(text []byte) *Text {
	switch {
	case IsUTF16(text):
		return &Text{opaque: true}
	case IsBinary(text):
		return &Text{Binary: true}
	}
	if c.seen == nil {
		c.seen = make([]uint64, 1<<24/64)
	}
	c.found = c.found[:0]
	trigrams(text, func(t uint32) {
		if word, bit := &c.seen[t>>6], uint64(1)<<(t&63); *word&bit == 0 {
			*word |= bit
			c.found = append(c.found, t)
		}
	})
	blocks := (len(c.found)*bitsFor + 511) / 512
	made := &Text{filter: make([]uint64, blocks*8)}
	for _, t := range c.found {
		c.seen[t>>6] = 0
		h := hash(t)
		block := made.block(h)
		for range bitsEach {
			block[h>>6&7] |= 1 << (h & 63)
			h >>= 9
		}
	}
	return made
}

// Sniffed is how many bytes at the beginning of a file decide whether it is binary.
const Sniffed = 64 << 10

// IsBinary judges a file by its beginning: a NUL byte within Sniffed makes it binary, unless it is
// UTF-16.
func IsBinary(head []byte) bool {
	return bytes.IndexByte(head[:min(Sniffed, len(head))], 0) >= 0 && !IsUTF16(head)
}

// IsUTF16 reports whether a text begins with the mark of UTF-16.
func IsUTF16(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff})
}
