// JSON objects in the encoding of google.protobuf.Struct, straight from their text: a message with a
// field for each member, made by reflection, costs a hundred allocations.

package convert

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"
)

// Tags of the fields of Struct, of its map's entries, and of Value and ListValue.
const (
	tagField  = 1<<3 | 2 // Struct.fields, ListValue.values, and the key of an entry
	tagValue  = 2<<3 | 2
	tagNull   = 1 << 3
	tagNumber = 2<<3 | 1
	tagString = 3<<3 | 2
	tagBool   = 4 << 3
	tagObject = 5<<3 | 2
	tagList   = 6<<3 | 2
)

// structOf puts a value that marshals to a JSON object into a Struct; nil when it does not. One
// that is too large for a message is replaced by its size, and what nests too deep for one by words
// that say so. The Struct is for the wire alone: it holds its fields encoded, and Fields is empty.
func structOf(value any) *structpb.Struct {
	if value == nil {
		return nil
	}
	if fields, ok := encodeFields(value); ok {
		return wired(fields)
	}
	text, err := json.Marshal(value) // replaces what is not UTF-8
	if err != nil {
		return nil
	}
	if len(text) > shownStructured {
		return omitted(len(text))
	}
	fields, err := encodeObject(text)
	if err != nil {
		return nil
	}
	if len(fields) > wiredStructured {
		return omitted(len(text))
	}
	return wired(fields)
}

// wired returns a Struct that holds its fields encoded.
func wired(fields []byte) *structpb.Struct {
	wire := &structpb.Struct{}
	wire.ProtoReflect().SetUnknown(fields)
	return wire
}

// An objectEncoder reads a JSON text, which is valid and has no white space, and writes it as
// fields of messages.
type objectEncoder struct {
	text []byte
	at   int
	out  []byte
	cut  bool // something nests too deep and was left out
}

var (
	errNoObject = errors.New("the text is not an object")
	errNoText   = errors.New("a string is not text")
)

// encodeObject encodes the JSON object that text is, which json.Marshal has written.
func encodeObject(text []byte) ([]byte, error) {
	if text[0] != '{' || !utf8.Valid(text) {
		return nil, errNoObject
	}
	e := objectEncoder{text: text, out: make([]byte, 0, 2*len(text))}
	err := e.object(0)
	return e.out, err
}

// object encodes an object, in which the values are at the level depth+1.
func (e *objectEncoder) object(depth int) error {
	for e.at++; e.text[e.at] != '}'; {
		e.comma()
		entry := begin(&e.out, tagField)
		key := begin(&e.out, tagField)
		if err := e.string(); err != nil {
			return err
		}
		end(&e.out, key)
		e.at++ // the colon
		value := begin(&e.out, tagValue)
		if err := e.value(depth + 1); err != nil {
			return err
		}
		end(&e.out, value)
		end(&e.out, entry)
	}
	e.at++
	return nil
}

func (e *objectEncoder) list(depth int) error {
	for e.at++; e.text[e.at] != ']'; {
		e.comma()
		value := begin(&e.out, tagField)
		if err := e.value(depth + 1); err != nil {
			return err
		}
		end(&e.out, value)
	}
	e.at++
	return nil
}

func (e *objectEncoder) comma() {
	if e.text[e.at] == ',' {
		e.at++
	}
}

// value encodes the value at the position as the fields of a Value.
func (e *objectEncoder) value(depth int) (err error) {
	switch c := e.text[e.at]; {
	case c == 'n':
		e.at += len("null")
		e.out = append(e.out, tagNull, 0)
	case c == 't':
		e.at += len("true")
		e.out = append(e.out, tagBool, 1)
	case c == 'f':
		e.at += len("false")
		e.out = append(e.out, tagBool, 0)
	case c == '"':
		text := begin(&e.out, tagString)
		err = e.string()
		end(&e.out, text)
	case (c == '{' || c == '[') && depth == nested:
		e.skip()
		e.cut = true
		text := begin(&e.out, tagString)
		e.out = fmt.Appendf(e.out, "(left out: it nests deeper than %d levels)", nested)
		end(&e.out, text)
	case c == '{':
		object := begin(&e.out, tagObject)
		err = e.object(depth)
		end(&e.out, object)
	case c == '[':
		list := begin(&e.out, tagList)
		err = e.list(depth)
		end(&e.out, list)
	default:
		err = e.number()
	}
	return err
}

func (e *objectEncoder) number() error {
	from := e.at
	for e.at < len(e.text) && e.text[e.at] != ',' && e.text[e.at] != '}' && e.text[e.at] != ']' {
		e.at++
	}
	n, err := strconv.ParseFloat(string(e.text[from:e.at]), 64)
	e.out = binary.LittleEndian.AppendUint64(append(e.out, tagNumber), math.Float64bits(n))
	return err
}

// begin begins a field of so many bytes as are written to out until end is called with its result.
func begin(out *[]byte, tag byte) (from int) {
	*out = append(*out, tag, 0)
	return len(*out)
}

func end(out *[]byte, from int) {
	size := len(*out) - from
	if size < 1<<7 { // as most are: the length fits into the byte that was left for it
		(*out)[from-1] = byte(size)
		return
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	*out = append(*out, length[1:n]...)
	copy((*out)[from-1+n:], (*out)[from:from+size])
	copy((*out)[from-1:], length[:n])
}

// string writes the content of the string at the position.
func (e *objectEncoder) string() error {
	for e.at++; e.text[e.at] != '"'; {
		if e.text[e.at] == '\\' {
			if err := e.escape(); err != nil {
				return err
			}
			continue
		}
		from := e.at
		for c := e.text[e.at]; c != '"' && c != '\\'; c = e.text[e.at] {
			e.at++
		}
		e.out = append(e.out, e.text[from:e.at]...)
	}
	e.at++
	return nil
}

func (e *objectEncoder) escape() error {
	c := e.text[e.at+1]
	e.at += 2
	switch c {
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return e.unicode()
	}
	e.out = append(e.out, c)
	return nil
}

// unicode writes the character whose number is at the position, in one escape or in two.
func (e *objectEncoder) unicode() error {
	r := e.hexadecimal()
	if utf16.IsSurrogate(r) {
		if e.text[e.at] != '\\' || e.text[e.at+1] != 'u' {
			return errNoText
		}
		e.at += 2
		if r = utf16.DecodeRune(r, e.hexadecimal()); r == utf8.RuneError {
			return errNoText
		}
	}
	e.out = utf8.AppendRune(e.out, r)
	return nil
}

func (e *objectEncoder) hexadecimal() rune {
	n, _ := strconv.ParseUint(string(e.text[e.at:e.at+4]), 16, 16) // the text is valid
	e.at += 4
	return rune(n)
}

// skip passes over the object or list at the position.
func (e *objectEncoder) skip() {
	for open := 0; ; e.at++ {
		switch e.text[e.at] {
		case '{', '[':
			open++
		case '}', ']':
			if open--; open == 0 {
				e.at++
				return
			}
		case '"':
			for e.at++; e.text[e.at] != '"'; e.at++ {
				if e.text[e.at] == '\\' {
					e.at++
				}
			}
		}
	}
}
