package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrEmpty is a [Reader]'s error when there was not one JSON value.
var ErrEmpty = errors.New("there is no message: the input is empty")

// A Reader reads one message from text as it comes: JSON values one after the other, or server-sent events. Its zero value
// is ready to use. Its errors name the line.
type Reader struct {
	Message
	text   []byte // that is not a whole value, or line of an event, yet
	line   int    // of its first byte, less one
	form   form
	nested nesting
	passed int // bytes of text that nested has seen
	data   []byte
	at     int // the line of data
	values int
}

// A form is how JSON values stand in the text.
type form uint8

const (
	unknown form = iota
	values       // one after the other
	sent         // as the data of server-sent events
)

// Feed reads the next piece of the text and returns the tool uses that are complete by it, in order, beside an error too.
// After an error the reader takes nothing more.
func (r *Reader) Feed(text []byte) (uses []Use, err error) {
	r.text = append(r.text, text...)
	for err == nil {
		r.skip()
		value, line, found := r.next()
		if !found {
			break
		}
		var ready []Use
		ready, err = r.take(value, line)
		uses = append(uses, ready...)
	}
	if err == nil && len(r.text)+len(r.data) > maxHeld {
		err = fmt.Errorf("line %d: the value has more than %d bytes", r.line+1, maxHeld)
	}
	return uses, err
}

// End is called when the text is over. See [Message.End].
func (r *Reader) End() ([]Use, Ending, error) {
	uses, err := r.rest()
	if err == nil && r.values == 0 {
		err = ErrEmpty
	}
	if err != nil {
		return uses, Ending{}, err
	}
	more, ending, err := r.Message.End()
	return append(uses, more...), ending, err
}

// rest reads a last value without a line end. In a stream it is where the stream broke off.
func (r *Reader) rest() ([]Use, error) {
	var uses []Use
	var err error
	if r.form == sent {
		uses, err = r.Feed([]byte("\n\n"))
	} else if len(r.text) > 0 {
		uses, err = r.take(r.text, r.line)
	}
	if _, is := errors.AsType[*syntaxError](err); is && r.events != nil {
		r.events.ended = false
		return uses, nil
	}
	return uses, err
}

// take reads one value.
func (r *Reader) take(value []byte, line int) ([]Use, error) {
	r.values++
	uses, err := r.Add(bytes.Clone(value)) // text is written to again
	if _, failed := errors.AsType[*Failure](err); err == nil || failed {
		return uses, err
	}
	is := ":"
	if _, bad := errors.AsType[*syntaxError](err); bad {
		is = " is not JSON:"
	}
	return uses, fmt.Errorf("line %d%s %w", line+1, is, err)
}

// skip drops the space before a value, and finds out the form.
func (r *Reader) skip() {
	if r.form == unknown {
		r.drop(len(r.text) - len(bytes.TrimPrefix(r.text, []byte("\ufeff"))))
	}
	if r.form != sent && r.passed == 0 {
		r.drop(len(r.text) - len(bytes.TrimLeft(r.text, " \t\r\n")))
	}
	if r.form == unknown && len(r.text) > 0 {
		if r.form = values; bytes.IndexByte([]byte("deir:"), r.text[0]) >= 0 {
			r.form = sent
		}
	}
}

// drop takes n bytes off the text.
func (r *Reader) drop(n int) {
	r.line += bytes.Count(r.text[:n], []byte("\n"))
	r.text = r.text[n:]
}

// next takes a whole value off the text, with its line.
func (r *Reader) next() (value []byte, line int, found bool) {
	if r.form == sent {
		return r.nextEvent()
	}
	if len(r.text) == 0 {
		return nil, 0, false
	}
	end := r.end()
	if end < 0 {
		return nil, 0, false
	}
	value, line = r.text[:end], r.line
	r.drop(end)
	r.nested, r.passed = nesting{}, 0
	return value, line, true
}

// end returns where the value ends with which the text begins; negative: not yet.
func (r *Reader) end() int {
	if r.text[0] != '{' && r.text[0] != '[' {
		return bytes.IndexAny(r.text, " \t\r\n")
	}
	for ; r.passed < len(r.text); r.passed++ {
		if r.nested.next(r.text[r.passed]); r.nested.over {
			return r.passed + 1
		}
	}
	return -1
}

// nextEvent takes lines off the text until an event has its data. What is not a line of an event is taken for a value,
// which is refused as such.
func (r *Reader) nextEvent() (value []byte, line int, found bool) {
	for {
		end := bytes.IndexByte(r.text, '\n')
		if end < 0 {
			return nil, 0, false
		}
		text := bytes.TrimSuffix(r.text[:end], []byte("\r"))
		at := r.line
		r.drop(end + 1)
		field, content, _ := bytes.Cut(text, []byte(":"))
		switch string(field) {
		case "data":
			if r.data == nil {
				r.at = at
			}
			r.data = append(append(r.data, bytes.TrimPrefix(content, []byte(" "))...), '\n')
			if len(r.data) > maxHeld {
				return nil, 0, false
			}
		case "event", "id", "retry":
		case "":
			if data := bytes.TrimSpace(r.data); len(text) == 0 && len(data) > 0 {
				r.data = nil
				return data, r.at, true
			}
		default:
			return text, at, true
		}
	}
}

// nesting follows a JSON value byte by byte up to its end. That a value is JSON it does not check.
type nesting struct {
	depth    int
	inString bool
	escaped  bool
	over     bool // the object or array with which the text began is closed
}

func (n *nesting) next(c byte) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.inString:
		n.escaped, n.inString = c == '\\', c != '"'
	case c == '"':
		n.inString = true
	case c == '{', c == '[':
		n.depth++
	case c == '}', c == ']':
		n.depth--
		n.over = n.depth <= 0
	}
}

// isObject reports whether text is one JSON object.
func isObject(text string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &object) == nil && object != nil
}
