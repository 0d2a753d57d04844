package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rootFiles are the settings files of a workspace, the highest first.
var rootFiles = []string{projectLocal, ".claude/settings.local.json", projectShared, ".claude/settings.json"}

const (
	projectLocal  = ".toold/settings.local.json"
	projectShared = ".toold/settings.json"
)

func isClaude(name string) bool { return strings.HasPrefix(name, ".claude/") }

// counting returns those of rootFiles that count when Claude Code's do or do not. Trust is about these only.
func counting(imports bool) []string {
	return slices.DeleteFunc(slices.Clone(rootFiles), func(name string) bool { return isClaude(name) && !imports })
}

// unusable is in the place of the hash of a file that cannot be read or is not a settings file. It is not a hash, so such a
// file is never the one that was trusted.
const unusable = "unusable"

// A Trust is whether a workspace is trusted.
type Trust struct {
	Trusted bool
	// Changed are its settings files, relative to the root, that are not what they were when it was trusted. Not trusted
	// and nothing changed: it never was.
	Changed []string
	// Empty: it has no settings files, so that there is nothing to be trusted.
	Empty bool
}

// book is the content of the trust file.
type book struct {
	Roots map[string]promise `json:"roots"` // by real path
	// Servers are the digests of servers of .mcp.json files that were approved, by real path and name.
	Servers map[string]map[string]string `json:"servers,omitempty"`
}

// A promise is what was trusted of a root.
type promise struct {
	// Files are the SHA-256 in hexadecimal of those of rootFiles that were there and counted, and of serversFile, on which the
	// trust does not depend.
	Files map[string]string `json:"files"`
}

// parseBook reads the trust file. The error is a *FileError.
func parseBook(file string, data []byte) (*book, error) {
	if _, err := parseDocument(file, data); err != nil {
		return nil, err
	}
	var b book
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, &FileError{File: file, Why: "it is not a list of trusted workspaces; fix or remove it"}
	}
	return &b, nil
}

// trust compares those of a root's files that have these names with what was trusted.
func (b *book) trust(real string, names []string, sums map[string]string) Trust {
	t := Trust{Empty: len(sums) == 0}
	if promised, known := b.Roots[real]; known {
		t.Changed = different(names, promised.Files, sums)
		t.Trusted = len(t.Changed) == 0
	}
	return t
}

// why returns, as the end of a sentence, why the workspace is not trusted.
func (t Trust) why() string {
	if len(t.Changed) > 0 {
		return "has changed since it was trusted (" + joined(t.Changed) + ")"
	}
	return "is not trusted"
}

// different returns those of the names whose files differ between two looks.
func different(names []string, a, b map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return a[name] == b[name] })
}

// sums returns the hashes of the files that count of the scope's root of an index, by name, as the view has found them, and that
// of serversFile.
func (v *view) sums(root int) map[string]string {
	sums := map[string]string{}
	for _, l := range v.layers {
		if l.place.level != workspace || l.root != root || l.silent {
			continue
		}
		sum := l.reading.sum
		if l.reading.err != nil {
			sum = unusable
		}
		if sum != "" {
			sums[strings.TrimPrefix(l.place.file, l.place.base+"/")] = sum
		}
	}
	return sums
}

// book returns the content of the trust file; of one that is not there, or cannot be used, an empty one.
func (v *view) book() *book {
	if v.trust == nil || v.trust.err != nil || v.trust.good == nil {
		return &book{}
	}
	return v.trust.good
}

// sumsOf reads the files of those names in a root now. err, a *FileError, is about the first settings file that is unusable.
func sumsOf(real string, names []string) (sums map[string]string, err error) {
	sums = map[string]string{}
	for _, name := range names {
		file := filepath.Join(real, name)
		data, wrong := readFile(file)
		if errors.Is(wrong, fs.ErrNotExist) || stampOf(file).absent() {
			continue
		}
		if wrong == nil {
			_, wrong = parseDocument(file, data)
		}
		sums[name] = sum(data)
		if wrong != nil {
			sums[name] = unusable
			if err == nil && name != serversFile {
				err = asFileError(file, "read", wrong)
			}
		}
	}
	return sums, err
}

// Trust remembers that the workspace at root is trusted with its settings files as they were when shown was loaded, for a
// scope with that root, and returns the absolute paths of those that are there. Claude Code's are among them if they counted
// then. It is an error, and changes nothing, if they are different now: the user has not seen them. So is a file that cannot
// be used: what it will be understood as is not known.
func (s *Store) Trust(root string, shown *Settings) (files []string, err error) {
	real, err := realRoot(root)
	if err != nil {
		return nil, err
	}
	err = s.exclusively(func() error {
		names := append(counting(shown.imports), serversFile)
		sums, err := sumsOf(real, names)
		if err != nil {
			return fmt.Errorf("%s cannot be trusted: %w", real, err)
		}
		if changed := different(names, shown.sums[filepath.Clean(root)], sums); len(changed) > 0 {
			return fmt.Errorf("%s is not trusted with its settings files as they are now: since they were shown %s changed. Look at them again: toold trust %s --show", real, joined(changed), quoted(root))
		}
		for _, name := range names {
			if sums[name] != "" {
				files = append(files, filepath.Join(real, name))
			}
		}
		return s.rewrite(func(b *book) { b.Roots[real] = promise{sums} })
	})
	return files, err
}

// Distrust forgets that the workspace at root was trusted. The root need not exist any more.
func (s *Store) Distrust(root string) error {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	real, _ := filepath.EvalSymlinks(absolute) // empty if it does not exist
	return s.change(func(b *book) {
		for _, root := range []string{absolute, real} {
			delete(b.Roots, root)
			delete(b.Servers, root)
		}
	})
}

// Trusted reports whether the workspace at root is trusted with its settings files as they are now.
func (s *Store) Trusted(root string) (Trust, error) {
	real, err := realRoot(root)
	if err != nil {
		return Trust{}, err
	}
	b, err := s.book()
	if err != nil {
		return Trust{}, err
	}
	names := s.counting()
	sums, _ := sumsOf(real, names) // what is unusable is not what was trusted
	return b.trust(real, names, sums), nil
}

// counting returns those of rootFiles that count now.
func (s *Store) counting() []string { return counting(s.Load(Scope{}).imports) }

func realRoot(root string) (string, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("the workspace %s cannot be found: %w", root, err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the workspace %s is not a directory", root)
	}
	return real, nil
}

// errNoBook: the store was opened without a trust file.
var errNoBook = errors.New("there is no file to remember trust in; name a settings file of the user")

// book reads the trust file now. One that is not there is empty.
func (s *Store) book() (*book, error) {
	b := &book{}
	if s.sources.TrustFile == "" {
		return b, nil
	}
	data, err := readFile(s.sources.TrustFile)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		b, err = parseBook(s.sources.TrustFile, data)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of trusted workspaces cannot be used: %w", asFileError(s.sources.TrustFile, "read", err))
	}
	return b, nil
}

// change changes the trust file.
func (s *Store) change(change func(*book)) error {
	return s.exclusively(func() error { return s.rewrite(change) })
}

// rewrite is change for a caller that keeps other writers out.
func (s *Store) rewrite(change func(*book)) error {
	if s.sources.TrustFile == "" {
		return errNoBook
	}
	b, err := s.book()
	if err != nil {
		return err
	}
	if b.Roots == nil {
		b.Roots = map[string]promise{}
	}
	if b.Servers == nil {
		b.Servers = map[string]map[string]string{}
	}
	before, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	change(b)
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil || bytes.Equal(before, data) {
		return err
	}
	to, err := openLocation("", s.sources.TrustFile)
	if err != nil {
		return err
	}
	defer to.close()
	old, err := to.read()
	if err != nil {
		return err
	}
	return to.write(old, append(data, '\n'), 0o600)
}

// notTrusted returns the error for an allow rule that cannot be remembered in a workspace.
func notTrusted(root string, t Trust) error {
	return fmt.Errorf("%s %s, so an allow rule in its settings files would not count. Look at them and run: toold trust %s; or remember the rule in the user's settings", root, t.why(), quoted(root))
}
