// The positions of the parts of a JSON text.

package ipynb

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

var errOther = errors.New("another kind of value")

// members returns the members of the object at span, of valid JSON. It rejects an object with the
// same key twice, even in different case: parsers disagree on which one counts.
func (n *Notebook) members(span Span) (list []Member, err error) {
	seen := map[string]bool{}
	err = n.walk(span, '{', func(d *json.Decoder, at func() int) error {
		behind := at() // of what stands before the key
		token, err := d.Token()
		if err != nil {
			return err
		}
		m := Member{Key: token.(string), At: behind + bytes.IndexByte(n.Raw[behind:], '"')}
		folded := strings.ToLower(strings.ToUpper(m.Key))
		if seen[folded] {
			return errOther
		}
		seen[folded] = true
		m.Value, err = value(d, at)
		list = append(list, m)
		return err
	})
	return list, err
}

// elements returns the values of the list at span, of valid JSON.
func (n *Notebook) elements(span Span) (list []Span, err error) {
	err = n.walk(span, '[', func(d *json.Decoder, at func() int) error {
		v, err := value(d, at)
		list = append(list, v)
		return err
	})
	return list, err
}

// walk calls each for the content of the object or list at span; at is the decoder's position in
// Raw.
func (n *Notebook) walk(span Span, open json.Delim, each func(d *json.Decoder, at func() int) error) error {
	d := json.NewDecoder(bytes.NewReader(n.Raw[span.From:span.To]))
	at := func() int { return span.From + int(d.InputOffset()) }
	if token, err := d.Token(); err != nil || token != open {
		return errOther
	}
	for d.More() {
		if err := each(d, at); err != nil {
			return err
		}
	}
	return nil
}

// value skips the next value.
func value(d *json.Decoder, at func() int) (Span, error) {
	var raw json.RawMessage
	err := d.Decode(&raw)
	return Span{at() - len(raw), at()}, err
}
