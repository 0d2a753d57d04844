package convert

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// FuzzEncodeObject compares with what the Protocol Buffers library makes of the same object.
func FuzzEncodeObject(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":null,"b":true,"c":false,"d":-1.5e3,"e":"x","f":{},"g":[],"h":[{"i":[1,"2",[]]}],"":0}`,
		`{"long":"` + strings.Repeat("x", 127) + `","longer":"` + strings.Repeat("y", 20_000) + `"}`,
		`{"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00":"\u0000\u003c ü"}`, `{"a":"\ud800"}`, `{"a":"\ud800\u0041"}`, `{"a":1e999}`, `[1]`, `{"a":1,"a":2}`,
		strings.Repeat(`{"a":[`, 30) + `"]}\"{"` + strings.Repeat(`]}`, 30),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			t.Skip()
		}
		written, err := json.Marshal(json.RawMessage(text))
		if err != nil {
			t.Skip()
		}
		want := &structpb.Struct{}
		fails := want.UnmarshalJSON(written)
		if fails != nil && strings.Contains(fails.Error(), "duplicate") {
			t.Skip() // the last one counts
		}
		fields, err := encodeObject(written)
		if (err == nil) != (fails == nil) {
			t.Fatalf("%s: %v, and the library: %v", text, err, fails)
		}
		if err != nil {
			return
		}
		for _, field := range want.GetFields() {
			flatten(field, 1)
		}
		got := &structpb.Struct{}
		if err := proto.Unmarshal(fields, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s is encoded as %v (%v)", text, got, err)
		}
	})
}

// flatten replaces what of a value, which so many objects and lists hold, nests too deep.
func flatten(value *structpb.Value, depth int) {
	object, list := value.GetStructValue(), value.GetListValue()
	if (object != nil || list != nil) && depth == nested {
		value.Kind = &structpb.Value_StringValue{StringValue: "(left out: it nests deeper than 25 levels)"}
		return
	}
	for _, field := range object.GetFields() {
		flatten(field, depth+1)
	}
	for _, element := range list.GetValues() {
		flatten(element, depth+1)
	}
}
