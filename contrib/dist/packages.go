// The tree as packages of Debian and of RPM.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers itself
)

// packages writes one package of each kind.
func (r *release) packages(tree []file, arch string) error {
	stage, err := os.MkdirTemp(r.work, "stage")
	if err != nil {
		return err
	}
	for _, f := range tree {
		at := filepath.Join(stage, f.name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(at, f.content, 0o600); err != nil {
			return err
		}
	}
	return errors.Join(r.pack("deb", tree, stage, arch), r.pack("rpm", tree, stage, arch))
}

func (r *release) pack(kind string, tree []file, stage, arch string) error {
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(r.info(kind, tree, stage, arch))
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, out), out.Close())
}

// info describes the package of a kind. The program needs nothing; what it uses when it is there, is recommended.
func (r *release) info(kind string, tree []file, stage, arch string) *nfpm.Info {
	contents := files.Contents{}
	for _, f := range tree {
		name := f.name
		if kind == "rpm" {
			name = strings.Replace(name, "zsh/vendor-completions", "zsh/site-functions", 1)
		}
		contents = append(contents, &files.Content{
			Source: filepath.Join(stage, f.name), Destination: "/usr/" + name,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.made},
		})
	}
	// A version before another one has a tilde in both kinds, and no hyphen.
	number, early, _ := strings.Cut(strings.TrimPrefix(r.version, "v"), "-")
	if early != "" {
		number += "~" + strings.ReplaceAll(early, "-", ".")
	}
	return &nfpm.Info{
		Name: "toold", Arch: arch, Platform: "linux", Version: number, VersionSchema: "none", Release: "1", MTime: r.made,
		Section: "utils", Priority: "optional", License: "Apache-2.0", Homepage: "https://github.com/toold/toold",
		Maintainer: "The toold authors <toold@localhost>",
		Description: "runs the tool calls of language models\n" +
			"A local daemon that orders calls, asks for permission, confines what they start, and undoes what they changed.",
		Overridables: nfpm.Overridables{
			Contents: contents, Recommends: []string{"git", "ripgrep"},
			RPM: nfpm.RPM{BuildHost: "localhost", Compression: "gzip"},
			Deb: nfpm.Deb{Compression: "gzip"},
		},
	}
}
