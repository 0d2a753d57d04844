package convert

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

// everything has a field of each kind that results have, and some that only encoding/json can write.
type everything struct {
	Text   string `json:"text"`
	Named  level  `json:"named,omitempty"`
	Upper  shout  `json:"upper,omitempty"`
	Loud   []loud `json:"loud"`
	Yes    bool
	Small  int8   `json:"small,omitempty"`
	Large  int64  `json:"large"`
	Whole  uint64 `json:"whole,omitempty"`
	Part   float64
	Maybe  *int          `json:"maybe,omitempty"`
	Or     *piece        `json:"or"`
	Parts  []piece       `json:"parts"`
	Texts  []string      `json:"texts,omitempty"`
	Deep   [][]*piece    `json:"deep"`
	Raw    []byte        `json:"raw"`
	Map    map[int]piece `json:"map,omitempty"`
	Array  [2]int        `json:"array,omitempty"`
	Any    any           `json:"any"`
	When   stamp         `json:"when"`
	Inner  struct{ A, B int }
	Left   string `json:"-"`
	Quoted odd    `json:"quoted"`
}

type level string

type piece struct {
	Name  string `json:"name"`
	Size  int64  `json:"size,omitempty"`
	Below *piece `json:"below,omitempty"`
}

type odd struct {
	N int `json:"n,string"`
}

type shout string

func (s shout) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(s))), nil }

type loud string

func (l *loud) MarshalJSON() ([]byte, error) { return json.Marshal("!" + string(*l)) }

type stamp struct{ at int64 }

func (s stamp) MarshalJSON() ([]byte, error) { return time.Unix(s.at, 0).UTC().MarshalJSON() }

// Generate makes only what JSON has.
func (everything) Generate(r *rand.Rand, size int) reflect.Value {
	type plain everything
	p := reflect.New(reflect.TypeFor[plain]()).Elem()
	for i := range p.NumField() {
		f := p.Type().Field(i)
		if r.Intn(4) == 0 || !f.IsExported() || f.Name == "Any" || f.Name == "Quoted" || f.Name == "When" {
			continue
		}
		if v, ok := quick.Value(f.Type, r); ok {
			p.Field(i).Set(v)
		}
	}
	e := everything(p.Interface().(plain))
	e.When.at, e.Quoted.N = r.Int63n(1<<32), r.Intn(size+1)
	e.Any = []any{nil, "x", 1.5, []string{"\xff\xfe", "\u2028<"}, map[string]any{"a": []int{1}}, &e.Inner, e.Parts}[r.Intn(7)]
	return reflect.ValueOf(e)
}

// sameAsJSON compares the two encodings of a value. Where encodeFields leaves it to encodeObject there
// is nothing to compare; it returns false then.
func sameAsJSON(t *testing.T, value any) bool {
	t.Helper()
	got, ok := encodeFields(value)
	if !ok {
		return false
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%+v is encoded though it is not JSON: %v", value, err)
	}
	want, err := encodeObject(text)
	if err != nil || !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		from := max(0, at-100)
		t.Fatalf("(%v) from byte %d on it is encoded as\n%q instead of\n%q", err, at, got[from:min(len(got), at+100)], want[from:min(len(want), at+100)])
	}
	return true
}

func TestFieldsAreEncodedAsJSONIs(t *testing.T) {
	made := 0
	err := quick.Check(func(e everything) bool {
		if sameAsJSON(t, e) {
			made++
		}
		return sameAsJSON(t, &e) || true
	}, &quick.Config{MaxCount: 100})
	if err != nil || made < 50 {
		t.Errorf("%d of 100 values are encoded by their fields: %v", made, err)
	}
	for _, value := range []any{
		everything{},
		everything{Text: "a\xff\xfeb\xe2\x82 \x00\u2028", Part: math.Copysign(0, -1), Large: math.MaxInt64, Whole: math.MaxUint64},
		struct{ Large, Small int64 }{math.MinInt64, 1<<53 + 1},
		struct{ List []piece }{List: make([]piece, 500)},
		struct{}{},
		piece{Name: strings.Repeat("x", 1<<7), Below: &piece{Name: strings.Repeat("y", 1<<14)}},
	} {
		if !sameAsJSON(t, value) {
			t.Errorf("%+v is not encoded by its fields", value)
		}
	}
}

func TestFieldsThatAreNot(t *testing.T) {
	deep := &piece{}
	for range nested {
		deep = &piece{Below: deep}
	}
	type embeds struct{ piece }
	twice := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"a"`}, {Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"a"`},
	})
	for name, value := range map[string]any{
		"nil": (*piece)(nil), "map": map[string]any{"a": 1}, "text": "text", "deep": deep, "large": piece{Name: strings.Repeat("x", largestByFields)},
		"embedded": embeds{}, "many": struct{ List []piece }{make([]piece, largestByFields/4)}, "NaN": struct{ N any }{math.NaN()}, "itself": &stamp{},

		"deep in another way": struct{ Any any }{deep}, "twice": reflect.New(twice).Elem().Interface(),
	} {
		if _, ok := encodeFields(value); ok {
			t.Errorf("%s is encoded by its fields", name)
		}
	}
}

func BenchmarkStructOf(b *testing.B) {
	value := struct {
		Path  string  `json:"path"`
		Parts []piece `json:"parts"`
	}{"/somewhere", make([]piece, 100)}
	for i := range value.Parts {
		value.Parts[i] = piece{Name: "file000.txt", Size: 2}
	}
	for b.Loop() {
		structOf(value)
	}
}
