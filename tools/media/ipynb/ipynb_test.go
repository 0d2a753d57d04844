package ipynb

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const sample = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": ["# Title\n", "text"]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "a\"b",
   "metadata": {},
   "outputs": [
    {"name": "stdout", "output_type": "stream", "text": ["1\n", "2\n"]},
    {"data": {"image/png": "aGk=\n", "text/plain": "<Figure>"}, "metadata": {}, "output_type": "display_data"},
    {"data": {"text/html": "<b>x</b>", "text/plain": ["x"]}, "execution_count": 3, "metadata": {}, "output_type": "execute_result"},
    {"ename": "E", "evalue": "v", "output_type": "error", "traceback": ["one", "two"]},
    {"data": {"application/x-y": 1}, "output_type": "display_data"}
   ],
   "source": "print(1)"
  },
  {"cell_type": "raw", "metadata": {}, "source": []}
 ],
 "metadata": {"kernelspec": {"language": "python"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestParse(t *testing.T) {
	n, err := Parse([]byte("\ufeff" + sample))
	if err != nil {
		t.Fatal(err)
	}
	if n.Language != "python" || n.Minor != 5 || len(n.Cells) != 3 {
		t.Errorf("%q, minor %d, %d cells", n.Language, n.Minor, len(n.Cells))
	}
	for i, want := range []struct {
		id, kind, source, count string
		own                     bool
		outputs                 int
	}{
		{"intro", "markdown", "# Title\ntext", "", true, 0},
		{"cell-1", "code", "print(1)", "3", false, 5}, // its own id is none that nbformat knows
		{"cell-2", "raw", "", "", false, 0},
	} {
		c := n.Cells[i]
		if c.ID != want.id || c.Type != want.kind || c.Source != want.source || c.Count != want.count || c.Own != want.own || len(c.Outputs) != want.outputs {
			t.Errorf("cell %d: %+v", i, c)
		}
	}
	out := n.Cells[1].Outputs
	if out[0].Text != "1\n2\n" || out[1].Media != "image/png" || out[1].Text != "" || out[2].Text != "x" || out[3].Text != "one\ntwo" || !out[3].Error || out[4].Other[0] != "application/x-y" {
		t.Errorf("outputs %+v", out)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "not JSON",
		"[]":                         "not a JSON object",
		"{\n\"cells\": [\n}":         "line 3",
		`{"nbformat":4}`:             "no list of cells",
		`{"cells":{}}`:               "not a list",
		`{"cells":[1]}`:              "cell 0",
		`{"cells":[{}]}`:             "cell_type",
		`{"cells":[],"cells":[]}`:    "unique keys",
		`{"cells":[{"source":[1]}]}`: "source",
	} {
		var format *FormatError
		if _, err := Parse([]byte(text)); !errors.As(err, &format) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	var version *VersionError
	if _, err := Parse([]byte(`{"worksheets":[],"nbformat":3}`)); !errors.As(err, &version) || version.Major != 3 {
		t.Errorf("nbformat 3: %v", err)
	}
}

// Names are unambiguous, whatever ids the cells have.
func TestNamesAreUnique(t *testing.T) {
	n, err := Parse([]byte(`{"cells":[{"cell_type":"code"},{"cell_type":"code","id":"cell-0"},{"cell_type":"code","id":"cell-0"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := n.Cells[0].ID, n.Cells[1].ID, n.Cells[2].ID; a != "cell-0_" || b != "cell-0" || c != "cell-2" {
		t.Errorf("%q %q %q", a, b, c)
	}
}

// Whatever is taken for a notebook: each part stands where it is said to stand.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"cells":[{"cell_type":"code","\"":"\\\"","source":"a"}],"nbformat":4}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data)
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, c := range n.Cells {
			if names[c.ID] || c.ID == "" {
				t.Fatalf("two cells are called %q", c.ID)
			}
			names[c.ID] = true
			if !json.Valid(data[c.Span.From:c.Span.To]) {
				t.Fatalf("cell %q stands at %q", c.ID, data[c.Span.From:c.Span.To])
			}
			for _, m := range c.Members {
				var key string
				if err := json.NewDecoder(strings.NewReader(string(data[m.At:]))).Decode(&key); err != nil || key != m.Key || !json.Valid(data[m.Value.From:m.Value.To]) {
					t.Fatalf("member %q stands at %.40q, its value at %.40q", m.Key, data[m.At:], data[m.Value.From:m.Value.To])
				}
			}
		}
	})
}

// TestDecoys: what readers could take in two ways is refused.
func TestDecoys(t *testing.T) {
	for _, cell := range []string{
		`{"cell_type":"code","source":"run","Source":"shown"}`, `{"cell_type":"code","source":"a","source":"b"}`, `{"cell_type":"co\nde","source":"a"}`,
	} {
		var wrong *FormatError
		if _, err := Parse([]byte(`{"cells":[` + cell + `],"nbformat":4,"nbformat_minor":5,"metadata":{}}`)); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", cell, err)
		}
	}
}
