// The image: a root file system that was fetched beforehand, and the tree on top of it.

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image writes the image as a tar file in the layout of OCI.
func (r *release) image(tree []file, rootfs string) error {
	made, err := r.compose(tree, rootfs)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.work, "image")
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	platform := layout.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH})
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})
	if err := to.AppendImage(made, platform, name); err != nil {
		return err
	}
	files, err := filesBelow(dir)
	if err != nil {
		return err
	}
	packed, err := r.tar(files, "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "toold-"+r.version+"-linux-"+runtime.GOARCH+".oci.tar"), packed, 0o644) //nolint:gosec // results are for everyone
}

// compose makes the image of two layers.
func (r *release) compose(tree []file, rootfs string) (v1.Image, error) {
	packed, err := r.tar(tree, "usr/")
	if err != nil {
		return nil, err
	}
	base, wrongBase := tarball.LayerFromFile(rootfs, tarball.WithMediaType(types.OCILayer))
	top, wrongTop := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }, tarball.WithMediaType(types.OCILayer))
	if err := errors.Join(wrongBase, wrongTop); err != nil {
		return nil, err
	}
	blank := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made, err := mutate.Append(blank,
		mutate.Addendum{Layer: base, History: v1.History{Created: v1.Time{Time: r.made}, CreatedBy: "debootstrap"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: v1.Time{Time: r.made}, CreatedBy: "toold " + r.version}})
	if err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", runtime.GOARCH, v1.Time{Time: r.made}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/toold"}, Cmd: []string{"serve"}, User: "1000:1000", WorkingDir: "/home/toold",
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/toold"},
		Labels: map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(made, config)
}

// filesBelow returns the files below a directory, by name.
func filesBelow(dir string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, file{name, 0o644, content})
		return err
	})
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, err
}
