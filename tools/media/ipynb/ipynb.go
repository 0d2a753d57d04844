// Package ipynb parses a Jupyter notebook (nbformat 4): its cells, and the position of each part in
// the file's bytes, so that one part can be changed and all others kept. It works on bytes in
// memory and does not know files or tools.
package ipynb

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Notebook is a parsed file. Its Cells and Raw must not be modified.
type Notebook struct {
	Raw      []byte
	Minor    int    // nbformat_minor
	Language string // of the code cells; empty: unknown
	Top      []Member
	Cells    []Cell
	List     Span // the list of cells in Raw, brackets included
}

// A Span is a range of Raw, from its first byte to after its last.
type Span struct{ From, To int }

// A Member is one key of an object with its value.
type Member struct {
	Key   string
	At    int // where the key's opening quote stands
	Value Span
}

// A Cell is one cell.
type Cell struct {
	// ID is the name of the cell: its own id, or cell-N with its index from 0 if it has none.
	ID      string
	Own     bool   // the file has ID
	Type    string // "code", "markdown" or "raw"
	Source  string
	Count   string // execution count; empty: not executed
	Outputs []Output
	Span    Span
	Members []Member // in the order of the file
}

// An Output is one output of a code cell.
type Output struct {
	Text  string   // the text form; it may hold terminal escapes
	Error bool     // Text is an error with its traceback
	Media string   // media type of Image
	Image string   // an image in base64, which may have line breaks in it; empty: none
	Other []string // media types of an output that has neither text nor an image
}

// A FormatError is why the bytes are not a notebook of nbformat 4, as a clause.
type FormatError struct{ Why string }

func (e *FormatError) Error() string { return e.Why }

// A VersionError is a notebook of another major version of the format.
type VersionError struct{ Major int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("it is of nbformat %d, and only nbformat 4 is supported", e.Major)
}

// mark is the byte order mark of UTF-8, which some editors write before JSON although it is not
// allowed there.
var mark = []byte("\ufeff")

// Parse parses a notebook. data must not be modified afterwards. The error is a *FormatError or a
// *VersionError.
func Parse(data []byte) (*Notebook, error) {
	n := &Notebook{Raw: data}
	body := bytes.TrimPrefix(data, mark)
	if !json.Valid(body) {
		return nil, &FormatError{notJSON(body)}
	}
	offset := len(data) - len(body)
	var err error
	if n.Top, err = n.members(Span{offset, len(data)}); err != nil {
		return nil, &FormatError{"it is not a JSON object with unique keys"}
	}
	var head struct {
		Major    int `json:"nbformat"`
		Minor    int `json:"nbformat_minor"`
		Metadata struct {
			Language struct {
				Name string `json:"name"`
			} `json:"language_info"`
			Kernel struct {
				Language string `json:"language"`
			} `json:"kernelspec"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(body, &head) // what does not fit stays empty, and is judged below
	switch list := Find(n.Top, "cells"); {
	case head.Major != 0 && head.Major != 4:
		return nil, &VersionError{head.Major}
	case list < 0:
		return nil, &FormatError{"it has no list of cells"}
	default:
		n.List = n.Top[list].Value
	}
	n.Minor = head.Minor
	n.Language = cmp.Or(head.Metadata.Language.Name, head.Metadata.Kernel.Language)
	return n, n.readCells()
}

func notJSON(body []byte) string {
	if !utf8.Valid(body) && bytes.IndexByte(body, 0) >= 0 {
		return "it is not JSON in UTF-8"
	}
	err := json.Unmarshal(body, new(any))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := bytes.Count(body[:min(int(syntax.Offset), len(body))], []byte{'\n'}) + 1
		return fmt.Sprintf("it is not JSON: on line %d, %v", line, err)
	}
	return "it is not JSON"
}

func (n *Notebook) readCells() error {
	spans, err := n.elements(n.List)
	if err != nil {
		return &FormatError{"its cells are not a list"}
	}
	taken := map[string]bool{}
	for i, span := range spans {
		c, err := n.readCell(span)
		if err != nil {
			return &FormatError{fmt.Sprintf("cell %d (from 0) %v", i, err)}
		}
		if c.Own && taken[c.ID] { // the first cell keeps the name; the other is named by its index
			c.ID, c.Own = "", false
		}
		taken[c.ID] = c.Own || taken[c.ID]
		n.Cells = append(n.Cells, c)
	}
	for i := range n.Cells {
		if c := &n.Cells[i]; !c.Own {
			for c.ID = "cell-" + strconv.Itoa(i); taken[c.ID]; c.ID += "_" {
			}
			taken[c.ID] = true
		}
	}
	return nil
}

// idForm is the form of an id (nbformat 4.5), and of a type too.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (n *Notebook) readCell(span Span) (Cell, error) {
	c := Cell{Span: span}
	var err error
	if c.Members, err = n.members(span); err != nil {
		return c, errors.New("is not an object with unique keys")
	}
	var is struct {
		ID      any               `json:"id"`
		Type    any               `json:"cell_type"`
		Source  lines             `json:"source"`
		Count   any               `json:"execution_count"`
		Outputs []json.RawMessage `json:"outputs"`
	}
	if err := json.Unmarshal(n.Raw[span.From:span.To], &is); err != nil {
		return c, errors.New("has an invalid source or invalid outputs")
	}
	c.Type, _ = is.Type.(string)
	if !idForm.MatchString(c.Type) {
		return c, errors.New("has no cell_type")
	}
	if c.ID, _ = is.ID.(string); !idForm.MatchString(c.ID) {
		c.ID = "" // it would not do as a name, least of all in a question
	}
	c.Own = c.ID != ""
	c.Source = string(is.Source)
	if count, ok := is.Count.(float64); ok {
		c.Count = strconv.FormatFloat(count, 'f', -1, 64)
	}
	for _, raw := range is.Outputs {
		c.Outputs = append(c.Outputs, readOutput(raw))
	}
	return c, nil
}

// Index returns the index of the cell with that id.
func (n *Notebook) Index(id string) (int, bool) {
	i := slices.IndexFunc(n.Cells, func(c Cell) bool { return c.ID == id })
	return i, i >= 0
}

// Find returns the index of the member with that key, or -1.
func Find(members []Member, key string) int {
	return slices.IndexFunc(members, func(m Member) bool { return m.Key == key })
}

// lines is text that nbformat writes as one string or as a list of strings.
type lines string

// UnmarshalJSON takes either.
func (l *lines) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err == nil {
		*l = lines(strings.Join(list, ""))
		return nil
	}
	return json.Unmarshal(data, (*string)(l))
}
