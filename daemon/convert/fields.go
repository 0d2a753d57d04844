// Go values in the encoding of google.protobuf.Struct, straight from their fields. What comes out is
// what encoding/json and an objectEncoder make of the same value, at a fifth of their cost.

package convert

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// largestByFields is the largest encoding, in bytes, that is made from fields. JSON needs at most six
// times as much for the same, so such a value is below shownStructured in any case.
const largestByFields = shownStructured / 8

// encodeFields encodes a value that marshals to a JSON object. It returns false if that is for
// encodeObject: the value is too large, nests too deep, or is not a struct.
func encodeFields(value any) (fields []byte, ok bool) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil, false
	}
	e := fieldEncoder{out: make([]byte, 0, 1<<9)}
	ok = e.object(v, layoutOf(v.Type()), 0)
	return e.out, ok
}

// A structLayout is how a struct is written; nil: only encoding/json knows.
type structLayout []fieldLayout

type fieldLayout struct {
	index     int
	key       []byte // the field of an entry that has the name
	omitEmpty bool
	plain     bool // of a type that a fieldEncoder writes itself
}

var layouts sync.Map // structLayout by reflect.Type

// layoutOf returns the layout of a struct type.
func layoutOf(t reflect.Type) structLayout {
	known, ok := layouts.Load(t)
	if !ok {
		known, _ = layouts.LoadOrStore(t, newLayout(t))
	}
	return known.(structLayout)
}

func newLayout(t reflect.Type) structLayout {
	if marshalsItself(t) {
		return nil
	}
	layout, names := structLayout{}, map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous, options != "" && options != "omitempty":
			return nil
		case !f.IsExported(), tag == "-":
			continue
		case name == "":
			name = f.Name
		}
		if names[name] || len(name) >= 1<<7 || strings.Trim(name, letters) != "" {
			return nil
		}
		names[name] = true
		layout = append(layout, fieldLayout{i, append([]byte{tagField, byte(len(name))}, name...), options != "", isPlain(f.Type)})
	}
	return layout
}

// letters are what names of fields are made of. Some others have a meaning of their own in a tag.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// isPlain reports whether a fieldEncoder writes values of the type itself. A struct may turn out to
// have no layout.
func isPlain(t reflect.Type) bool {
	for ; ; t = t.Elem() {
		if t.Kind() == reflect.Struct {
			return true
		}
		if marshalsItself(t) {
			return false
		}
		switch t.Kind() {
		case reflect.Pointer:
		case reflect.Slice:
			if t.Elem().Kind() == reflect.Uint8 {
				return false
			}
		default:
			return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Uint64 || t.Kind() == reflect.String
		}
	}
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// marshalsItself reports whether encoding/json asks values of the type, or pointers to them, how they
// are written.
func marshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler) || p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

// A fieldEncoder writes values as fields of messages. Its methods return false for what encodeObject
// has to write.
type fieldEncoder struct{ out []byte }

// object encodes a struct, in which the values are at the level depth+1.
func (e *fieldEncoder) object(v reflect.Value, layout structLayout, depth int) bool {
	if layout == nil {
		return false
	}
	for i := range layout {
		f := &layout[i]
		field := v.Field(f.index)
		if f.omitEmpty && isEmpty(field) || f.plain && e.short(f.key, field) {
			continue
		}
		entry := begin(&e.out, tagField)
		e.out = append(e.out, f.key...)
		value := begin(&e.out, tagValue)
		if f.plain && !e.value(field, depth+1) || !f.plain && !e.other(field, depth+1) {
			return false
		}
		end(&e.out, value)
		end(&e.out, entry)
	}
	return len(e.out) <= largestByFields
}

// short encodes an entry with a short text, as most have, with all lengths known beforehand; false:
// it is not one.
func (e *fieldEncoder) short(key []byte, v reflect.Value) bool {
	if v.Kind() != reflect.String || len(key)+v.Len() > 1<<7-5 {
		return false
	}
	text := v.String()
	if !utf8.ValidString(text) {
		return false
	}
	size := byte(len(text))
	e.out = append(e.out, tagField, byte(len(key))+size+4)
	e.out = append(append(e.out, key...), tagValue, size+2, tagString, size)
	e.out = append(e.out, text...)
	return true
}

// isEmpty reports whether omitempty leaves the value out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Float32, reflect.Float64:
		return v.Float() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// value encodes a value of a plain type as the fields of a Value.
func (e *fieldEncoder) value(v reflect.Value, depth int) bool {
	switch v.Kind() {
	case reflect.String:
		e.text(v.String())
	case reflect.Bool:
		is := byte(0)
		if v.Bool() {
			is = 1
		}
		e.out = append(e.out, tagBool, is)
	case reflect.Pointer:
		if !v.IsNil() {
			return e.value(v.Elem(), depth)
		}
		e.out = append(e.out, tagNull, 0)
	case reflect.Slice:
		return e.list(v, depth)
	case reflect.Struct:
		return e.structure(v, layoutOf(v.Type()), depth)
	default:
		n := 0.
		if v.CanInt() {
			n = float64(v.Int())
		} else {
			n = float64(v.Uint())
		}
		e.out = binary.LittleEndian.AppendUint64(append(e.out, tagNumber), math.Float64bits(n))
	}
	return true
}

// structure encodes a struct as a Value.
func (e *fieldEncoder) structure(v reflect.Value, layout structLayout, depth int) bool {
	if layout == nil {
		return e.other(v, depth)
	}
	object := begin(&e.out, tagObject)
	ok := depth < nested && e.object(v, layout, depth)
	end(&e.out, object)
	return ok
}

// elementSize is about what an element of a list takes, in bytes.
const elementSize = 64

func (e *fieldEncoder) list(v reflect.Value, depth int) bool {
	if v.IsNil() {
		e.out = append(e.out, tagNull, 0)
		return true
	}
	encode := e.value
	if element := v.Type().Elem(); element.Kind() == reflect.Struct {
		layout := layoutOf(element)
		encode = func(v reflect.Value, depth int) bool { return e.structure(v, layout, depth) }
	}
	list := begin(&e.out, tagList)
	e.out = slices.Grow(e.out, v.Len()*elementSize)
	for i := range v.Len() {
		value := begin(&e.out, tagField)
		if depth == nested || !encode(v.Index(i), depth+1) {
			return false
		}
		end(&e.out, value)
	}
	end(&e.out, list)
	return depth < nested && len(e.out) <= largestByFields
}

// other encodes a value by way of its JSON text.
func (e *fieldEncoder) other(v reflect.Value, depth int) bool {
	if v.CanAddr() {
		v = v.Addr() // how a value is written may depend on it
	}
	text, err := json.Marshal(v.Interface())
	if err != nil || len(text) > largestByFields || !utf8.Valid(text) {
		return false
	}
	by := objectEncoder{text: text, out: e.out}
	err = by.value(depth)
	e.out = by.out
	return err == nil && !by.cut
}

func (e *fieldEncoder) text(s string) {
	text := begin(&e.out, tagString)
	if utf8.ValidString(s) {
		e.out = append(e.out, s...)
	} else {
		for _, r := range s { // each byte that is not text counts as one character
			e.out = utf8.AppendRune(e.out, r)
		}
	}
	end(&e.out, text)
}
