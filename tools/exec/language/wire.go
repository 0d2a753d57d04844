//go:build !no_lsp

// The part of the Language Server Protocol, version 3.17, that is used here. Names and numbers are
// the protocol's.

package language

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
)

type wirePosition struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type wireRange struct {
	Start wirePosition `json:"start"`
	End   wirePosition `json:"end"`
}

// A wireLocation is a Location or a LocationLink.
type wireLocation struct {
	URI    string     `json:"uri"`
	Range  wireRange  `json:"range"`
	Target string     `json:"targetUri"`
	Chosen *wireRange `json:"targetSelectionRange"`
}

type wireDocument struct {
	URI     string `json:"uri"`
	Version *int32 `json:"version,omitempty"`
}

type wireOpening struct {
	URI        string `json:"uri"`
	LanguageID string `json:"languageId"`
	Version    int32  `json:"version"`
	Text       string `json:"text"`
}

type wirePlace struct {
	Document wireDocument  `json:"textDocument"`
	Position *wirePosition `json:"position,omitempty"`
	Context  any           `json:"context,omitempty"`
	NewName  string        `json:"newName,omitempty"`
}

type wireDiagnostic struct {
	Range    wireRange       `json:"range"`
	Severity int             `json:"severity"`
	Code     json.RawMessage `json:"code"` // a number or a string
	Source   string          `json:"source"`
	Message  string          `json:"message"`
}

type wirePublication struct {
	URI         string           `json:"uri"`
	Version     *int32           `json:"version"`
	Diagnostics []wireDiagnostic `json:"diagnostics"`
}

// A wireSymbol is a DocumentSymbol, a SymbolInformation, a WorkspaceSymbol or a CallHierarchyItem.
type wireSymbol struct {
	Name      string        `json:"name"`
	Detail    string        `json:"detail"`
	Kind      int           `json:"kind"`
	Container string        `json:"containerName"`
	Chosen    *wireRange    `json:"selectionRange"`
	Range     *wireRange    `json:"range"`
	Location  *wireLocation `json:"location"`
	URI       string        `json:"uri"`
	Children  []wireSymbol  `json:"children"`
}

type wireCall struct {
	From *wireSymbol `json:"from"`
	To   *wireSymbol `json:"to"`
	At   []wireRange `json:"fromRanges"`
}

type wireEdit struct {
	Range   wireRange `json:"range"`
	NewText string    `json:"newText"`
}

type wireRename struct {
	Changes   map[string][]wireEdit `json:"changes"`
	Documents []struct {
		Kind     string       `json:"kind"` // create, rename, delete: not an edit of a text
		Document wireDocument `json:"textDocument"`
		Edits    []wireEdit   `json:"edits"`
	} `json:"documentChanges"`
}

type wireProgress struct {
	Token json.RawMessage `json:"token"`
	Value struct {
		Kind    string `json:"kind"`
		Title   string `json:"title"`
		Message string `json:"message"`
	} `json:"value"`
}

// Kinds of changes of files on the disk.
const (
	fileCreated = 1
	fileChanged = 2
	fileDeleted = 3
)

type wireFileEvent struct {
	URI  string `json:"uri"`
	Type int    `json:"type"`
}

// able reports whether the server has a capability: it is absent, a boolean or an object. One with
// diagnosticProvider supports requests, and publishes all the same.
func (s *server) able(capability string) bool {
	value := string(s.can[capability])
	return value != "" && value != "null" && value != "false"
}

// wanted are the client capabilities.
const wanted = `{
	"general": {"positionEncodings": ["utf-8", "utf-16"]},
	"window": {"workDoneProgress": true},
	"workspace": {
		"workspaceFolders": true, "configuration": true, "symbol": {},
		"didChangeWatchedFiles": {"dynamicRegistration": true},
		"workspaceEdit": {"documentChanges": true}
	},
	"textDocument": {
		"synchronization": {"didSave": true}, "definition": {}, "references": {}, "implementation": {}, "callHierarchy": {},
		"rename": {}, "hover": {"contentFormat": ["markdown", "plaintext"]},
		"documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
		"publishDiagnostics": {"versionSupport": true}
	}
}`

type wireFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

type wireInitialize struct {
	ProcessID    *int            `json:"processId"` // null: the server must not watch the daemon's process
	Root         string          `json:"rootUri"`
	Folders      []wireFolder    `json:"workspaceFolders"`
	Options      json.RawMessage `json:"initializationOptions"`
	Capabilities json.RawMessage `json:"capabilities"`
}

// uriOf returns the URI of an absolute path.
func uriOf(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// pathOf returns the absolute path of a URI; empty: it is not a file.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// kinds are the protocol's kinds of symbols, from 1.
var kinds = []string{
	"file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum", "interface", "function",
	"variable", "constant", "string", "number", "boolean", "array", "object", "key", "null", "enum member", "struct", "event", "operator",
	"type parameter",
}

// nth returns the n-th value of the protocol's, from 1, or another if there is none.
func nth[T any](values []T, n int, other T) T {
	if n < 1 || n > len(values) {
		return other
	}
	return values[n-1]
}

// severities are the protocol's, from 1. Any other value counts as an error; the protocol leaves
// that to the client.
var severities = []Severity{Error, Warning, Information, Hint}
