// The files that a machine gets, below /usr.

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A file is one of them.
type file struct {
	name    string // below /usr
	mode    os.FileMode
	content []byte
}

// tree returns the files around a program, by name. own is the same program for this machine, which prints its completions and
// its manual.
func (r *release) tree(program, own string) ([]file, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	files := []file{{"bin/toold", 0o755, content}}
	for shell, name := range map[string]string{
		"bash": "share/bash-completion/completions/toold", "zsh": "share/zsh/vendor-completions/_toold", "fish": "share/fish/vendor_completions.d/toold.fish",
	} {
		text, err := exec.Command(own, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("toold completion %s: %w", shell, err)
		}
		files = append(files, file{name, 0o644, text})
	}
	pages, err := r.manual(own)
	if err != nil {
		return nil, err
	}
	documents, err := r.documents()
	if err != nil {
		return nil, err
	}
	files = append(append(files, pages...), documents...)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// documents returns the files that are in the checkout as they are installed.
func (r *release) documents() (files []file, err error) {
	sources := map[string]string{"LICENSE": "share/doc/toold/copyright"}
	for pattern, dir := range map[string]string{"contrib/systemd/*": "lib/systemd/user/", "docs/*.md": "share/doc/toold/docs/", "*.md": "share/doc/toold/"} {
		found, err := r.git("ls-files", "-z", "--", ":(glob)"+pattern)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(found, "\x00"), "\x00") {
			sources[name] = dir + filepath.Base(name)
		}
	}
	for name, to := range sources {
		content, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{to, 0o644, content})
	}
	return files, nil
}

// manual returns the manual's pages, compressed.
func (r *release) manual(own string) (files []file, err error) {
	dir, err := os.MkdirTemp(r.work, "man")
	if err != nil {
		return nil, err
	}
	if out, err := exec.Command(own, "man", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("toold man: %w: %s", err, out)
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression) // with neither name nor time
		if err == nil {
			_, err = z.Write(text)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file{"share/man/man1/" + page.Name() + ".gz", 0o644, packed.Bytes()})
	}
	return files, nil
}
