// What a code cell has put out, as far as it can be shown. It does not judge how much of it is shown.

package cells

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// pictures are the media types of images that can be shown, the ones preferred first: an output holds one thing in
// several forms.
var pictures = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// texts are the media types that are shown as text, the ones preferred first. Of HTML and SVG there mostly is a plain form
// beside them, which says more in fewer words.
var texts = []string{"text/plain", "text/markdown", "text/latex", "application/json", "text/html", "image/svg+xml"}

// readOutput never fails: what is not understood is an output that shows nothing.
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

// shown chooses what is shown of the forms of one output: an image if there is one, else a text.
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

// textOf returns a string, a list of strings as one, and any other JSON as it is written.
func textOf(raw json.RawMessage) string {
	var text lines
	if json.Unmarshal(raw, &text) == nil {
		return string(text)
	}
	return string(raw)
}
