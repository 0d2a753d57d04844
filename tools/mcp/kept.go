//go:build !no_mcp

// What servers have listed, kept on disk, so that clients know the tools of a server that is not
// running.

package mcp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxKept and maxAllKept limit the kept list of one server and all of them, in bytes. The numbers
	// are our own, many times what the largest servers list.
	maxKept    = 4 << 20
	maxAllKept = 64 << 20
	// keptFor is how long a list is kept that no session has used.
	keptFor = 30 * 24 * time.Hour
	// keptFormat is part of what a list is kept under. A list in another format is never read.
	keptFormat = 1
)

// errDamaged is the error for a kept list whose content is not what was written.
var errDamaged = errors.New("the file is damaged")

// A listing is what a server has listed, as it is kept.
type listing struct {
	Server string      `json:"server,omitempty"` // its own name and version
	Tools  []*sdk.Tool `json:"tools"`
	Unread []string    `json:"unread,omitempty"` // a sentence for each part that was not read
}

// listPath returns the file in which the list of an entry's server is kept; empty: it is not kept.
// Its name is a hash of what decides what the server lists. Values of variables and headers are not
// part of that, since they may be secrets, but Entry.Digest changes when they are written
// differently.
func (f *Fleet) listPath(e Entry, s *Set) string {
	if f.Lists == "" || unfit(e.Name) != "" {
		return ""
	}
	var variables, headers []string
	for _, pair := range e.Env {
		name, _, _ := strings.Cut(pair, "=")
		variables = append(variables, name)
	}
	for name := range e.Headers {
		headers = append(headers, name)
	}
	slices.Sort(headers)
	key, _ := json.Marshal([]any{keptFormat, s.principal, s.host.Dir, e.transport(), e.Command, e.Args, variables, e.URL, headers, e.Confined, e.Digest})
	sum := sha256.Sum256(key)
	return filepath.Join(f.Lists, hex.EncodeToString(sum[:]))
}

// readList returns a kept list and marks it as used. The error is fs.ErrNotExist if there is none,
// and errDamaged if it cannot be used; it is removed then.
func readList(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxKept+sha256.Size*2+2))
	if err != nil {
		return nil, err
	}
	sum, list, _ := bytes.Cut(content, []byte("\n"))
	if len(list) > maxKept || string(sum) != sumOf(list) {
		return nil, errors.Join(errDamaged, os.Remove(path))
	}
	_ = os.Chtimes(path, time.Time{}, time.Now()) // without that, it is removed sooner
	return list, nil
}

// writeList keeps a list, in place of the one before. One that is too long is not kept, and neither
// is the one before.
func writeList(path string, list []byte) (err error) {
	if len(list) > maxKept {
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s\n%s", sumOf(list), list)
	err = cmp.Or(err, file.Sync())
	err = cmp.Or(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

func sumOf(list []byte) string {
	sum := sha256.Sum256(list)
	return hex.EncodeToString(sum[:])
}

// Sweep removes kept lists that no session has used for 30 days, and those that were used longest
// ago if all of them have more than 64 MiB. What cannot be removed is an error.
func (f *Fleet) Sweep(now time.Time) error {
	entries, err := os.ReadDir(f.Lists)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it was replaced just now
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var wrong []error
	var size int64
	for _, info := range kept {
		if size += info.Size(); size > maxAllKept || now.Sub(info.ModTime()) > keptFor {
			wrong = append(wrong, os.Remove(filepath.Join(f.Lists, info.Name())))
		}
	}
	return errors.Join(wrong...)
}

// recall reads the kept list, and reports whether the server's tools are known by that. No lock is
// held meanwhile: a disk may be slow.
func (s *server) recall() bool {
	defer s.tell(notify)
	defer close(s.read)
	if s.kept == "" {
		return false
	}
	list, err := readList(s.kept)
	if err == nil {
		err = s.adopt(list)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.notice("mcp_list_not_kept", "The list of the tools of the MCP server %s that was kept could not be read: %v. The server is started to list them.", s.entry.Name, err)
	}
	if err != nil {
		s.update(func() { s.status.State = Starting })
	}
	return err == nil
}

// keep records what the server has listed, here and on disk. If it is what was known before,
// nothing changes for clients.
func (s *server) keep(now listing) error {
	list, err := json.Marshal(now)
	if err != nil {
		return err
	}
	same := sumOf(list) == s.listed
	if !same {
		if err := s.adopt(list); err != nil {
			return err
		}
	}
	if s.kept == "" || same && os.Chtimes(s.kept, time.Time{}, time.Now()) == nil {
		return nil
	}
	if err := writeList(s.kept, list); err != nil {
		s.notice("mcp_list_not_kept", "The list of the tools of the MCP server %s could not be kept: %v. The next session starts the server to list them.", s.entry.Name, err)
	}
	return nil
}

// adopt makes tools of a list. It is the only way to them, so that the same list makes the same
// tools, whether it is a kept one or not.
func (s *server) adopt(list []byte) error {
	var now listing
	if err := json.Unmarshal(list, &now); err != nil {
		return err
	}
	defined, leftOut := define(s.entry, now.Tools, s.call)
	leftOut = append(leftOut, now.Unread...)
	s.listed = sumOf(list)
	s.mu.Lock()
	news := slices.ContainsFunc(leftOut, func(text string) bool { return !slices.Contains(s.status.LeftOut, text) })
	s.tools, s.status.Tools, s.status.LeftOut, s.status.Server = defined, len(defined), leftOut, now.Server
	s.mu.Unlock()
	if news {
		s.notice("mcp_left_out", "Some tools of the MCP server %s are left out. %s", s.entry.Name, some(leftOut))
	}
	return nil
}

// some returns a few of several sentences.
func some(sentences []string) string {
	const few = 3
	text := strings.Join(sentences[:min(few, len(sentences))], " ")
	if more := len(sentences) - few; more > 0 {
		text += fmt.Sprintf(" (%d more.)", more)
	}
	return text
}
