// The outputs of a code cell, as far as they can be shown.

package ipynb

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// pictures are the media types of images that can be shown, preferred ones first: an output holds
// the same thing in several forms.
var pictures = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// texts are the media types that are shown as text, preferred ones first. HTML and SVG mostly come
// with a plain form, which is shorter.
var texts = []string{"text/plain", "text/markdown", "text/latex", "application/json", "text/html", "image/svg+xml"}

// readOutput never fails: an output that cannot be parsed shows nothing.
func readOutput(raw json.RawMessage) Output {
	var is struct {
		Kind      string                     `json:"output_type"`
		Text      json.RawMessage            `json:"text"`
		Name      string                     `json:"ename"`
		Value     string                     `json:"evalue"`
		Traceback []string                   `json:"traceback"`
		Data      map[string]json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(raw, &is) // what does not fit stays empty
	switch is.Kind {
	case "stream":
		return Output{Text: textOf(is.Text)}
	case "error":
		text := strings.Join(is.Traceback, "\n")
		if text == "" {
			text = is.Name + ": " + is.Value
		}
		return Output{Text: text, Error: true}
	}
	return shown(is.Data)
}

// shown chooses the form of one output that is shown: an image if there is one, otherwise a text.
func shown(data map[string]json.RawMessage) (out Output) {
	for _, media := range pictures {
		if out.Image = textOf(data[media]); out.Image != "" {
			out.Media = media
			return out
		}
	}
	for _, media := range texts {
		if out.Text = textOf(data[media]); out.Text != "" {
			return out
		}
	}
	out.Other = slices.Sorted(maps.Keys(data))
	return out
}

// textOf returns a string, a list of strings as one, and any other JSON unchanged.
func textOf(raw json.RawMessage) string {
	var text lines
	if json.Unmarshal(raw, &text) == nil {
		return string(text)
	}
	return string(raw)
}
