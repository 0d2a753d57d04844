// The tree as a tar file: sorted, everything root's, every time the commit's.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path"
	"strings"
)

// archive writes the tree as a compressed tar file, in one directory that has the file's name.
func (r *release) archive(files []file, out string) error {
	packed, err := r.tar(files, strings.TrimSuffix(path.Base(out), ".tar.gz")+"/")
	if err != nil {
		return err
	}
	var content bytes.Buffer
	z := gzip.NewWriter(&content)
	_, err = z.Write(packed)
	if err := errors.Join(err, z.Close()); err != nil {
		return err
	}
	return os.WriteFile(out, content.Bytes(), 0o644) //nolint:gosec // results are for everyone
}

// tar returns the files, whose names get the prefix.
func (r *release) tar(files []file, prefix string) ([]byte, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	made := map[string]bool{".": true}
	for _, f := range files {
		name := prefix + f.name
		if err := r.directories(w, path.Dir(name), made); err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: r.made, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return content.Bytes(), err
}

// directories writes the directory and those above it that are not yet made.
func (r *release) directories(w *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := r.directories(w, path.Dir(dir), made); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: r.made, Format: tar.FormatUSTAR})
}
