// Package read is the Read tool: it shows lines of a text file, an image, pages of a PDF document
// or cells of a notebook, and records which part of it was seen. Text is streamed: the cost depends
// on the requested lines, not on the size of the file. Files that are needed as a whole have a
// limit. The package does not know what may be read.
package read

import (
	"context"
	_ "embed"
	"time"

	"github.com/toold/toold/tools"
)

//go:embed description.md
var description string

// Limits of one call. They are part of the tool's contract with models.
const (
	maxLines    = 2000    // lines, if the input has no limit
	maxLine     = 2000    // characters of one line
	resultChars = 100_000 // characters of a result
	closing     = 200     // of them, reserved for the sentence at its end
)

type input struct {
	FilePath string `json:"file_path" jsonschema:"absolute path of the file"`
	Offset   int    `json:"offset,omitempty" jsonschema:"number of the first line to read, of a notebook the first cell, from 1" minimum:"0" default:"1"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many lines, or cells, to read" minimum:"0" default:"2000"`
	Pages    string `json:"pages,omitempty" jsonschema:"pages of a PDF document, such as 1-5,9; for PDF only"`
	As       form   `json:"as,omitempty" jsonschema:"how a PDF document is given: as text, as an image of each page, or as the whole file; if left out, text, and an image of each page without text; for PDF only" enum:"text,image,document"`
}

// Structured is the structured result for text.
type Structured struct {
	FilePath   string `json:"filePath"`   // absolute, as named
	Size       int64  `json:"size"`       // bytes
	Encoding   string `json:"encoding"`   // "utf-8", "utf-16le", "gbk", ...
	BOM        bool   `json:"bom"`        // the file begins with a byte order mark
	LineEnding string `json:"lineEnding"` // "lf", "crlf", "mixed" or "none", of what was read
	Language   string `json:"language,omitempty"`
	// TotalLines is absent if the file was too large to be read to its end.
	TotalLines *int `json:"totalLines,omitempty"`
	FirstLine  int  `json:"firstLine"`            // shown; 0: none
	LastLine   int  `json:"lastLine"`             // shown; 0: none
	NextOffset int  `json:"nextOffset,omitempty"` // where to continue; 0: nothing follows
	Replaced   int  `json:"replaced,omitempty"`   // bytes shown as U+FFFD because they are invalid in the encoding
}

// Tool returns the Read tool.
func Tool() tools.Tool {
	return tools.New(tools.Spec{
		Name: "Read", Description: description, ReadOnly: true,
		TimeLimit: 60 * time.Second, MaxResultChars: resultChars, OnInterrupt: tools.Stop,
	}, tools.Funcs[input]{Validate: validate, Effects: effects, Check: check, Run: run})
}

func validate(in *input) error {
	if in.Pages != "" {
		if _, err := parsePages(in.Pages); err != nil {
			return err
		}
	}
	in.Offset = max(in.Offset, 1)
	if in.Limit == 0 {
		in.Limit = maxLines
	}
	return nil
}

func effects(in input) tools.Effects {
	return tools.Effects{Reads: []tools.Path{{Name: in.FilePath}}}
}

// check opens the file, so that the user is not asked about one that cannot be read.
func check(_ context.Context, env *tools.Env, in input) (tools.Preview, error) {
	s, err := open(env, in)
	if err != nil {
		return tools.Preview{}, err
	}
	defer func() { _ = s.close() }() // it was only read
	switch s.kind {
	case imageFile:
		err = s.checkImage()
	case documentFile, notebookFile: // examining their content costs more than a question
		err = s.checkSize()
	}
	return tools.Preview{}, err
}

func run(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	s, err := open(env, in)
	if err != nil {
		return tools.Result{}, err
	}
	defer func() { _ = s.close() }() // it was only read
	switch s.kind {
	case imageFile:
		return s.image(ctx, env)
	case documentFile:
		return s.document(ctx, env, in)
	case notebookFile:
		return s.notebook(ctx, env, in)
	}
	return s.lines(ctx, env, in)
}

// room returns how many characters of text a result may hold, without those that are reserved for
// the sentence at its end.
func room(env *tools.Env) int {
	if env.MaxChars > 0 {
		return max(env.MaxChars-closing, 1)
	}
	return resultChars - closing
}
