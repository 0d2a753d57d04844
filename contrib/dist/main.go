// Command dist builds what a release consists of, from a checkout and nothing else: binaries, packages, archives, an image, and
// what describes them. The same commit gives the same bytes: all times are the commit's, and no path of this machine is in a file.
//
// It reads the program only through its commands (completion, man), so that this module needs none of the daemon's.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A release is what is built.
type release struct {
	source  string // the checkout
	out     string // the directory for the results
	work    string // a directory that is deleted in the end
	version string // a semantic version with v
	// modified: the checkout may have changes that are in no commit, and the version says so.
	modified bool
	made     time.Time
}

func main() {
	r := release{}
	flag.StringVar(&r.source, "source", ".", "the checkout to build")
	flag.StringVar(&r.out, "out", "", "the directory for the results: a new or empty one, or that of an earlier build, which is emptied")
	flag.StringVar(&r.version, "version", "", "vMAJOR.MINOR.PATCH (default: the commit's tag, or a pseudo-version of Go)")
	flag.BoolVar(&r.modified, "modified", false, "build a checkout with changes that are in no commit, as VERSION+modified")
	arches := flag.String("arch", "amd64,arm64", "the architectures")
	rootfs := flag.String("rootfs", "", "the root file system of the image, a tar file for this machine's architecture; empty: no image")
	flag.Parse()
	if err := r.run(strings.Split(*arches, ","), *rootfs); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func (r *release) run(arches []string, rootfs string) (err error) {
	if r.out == "" {
		return errors.New("name a directory for the results with -out")
	}
	if err := r.identify(); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "toold-dist-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := r.empty(); err != nil {
		return err
	}
	own := filepath.Join(r.work, "own")
	if err := r.build(runtime.GOARCH, own); err != nil {
		return err
	}
	for _, arch := range arches {
		if err := r.release(arch, own); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	if rootfs != "" {
		files, err := r.tree(own, own)
		if err == nil {
			err = r.image(files, rootfs)
		}
		if err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	return r.checksums()
}

// sums is the name of the file that marks the directory of a build, from its beginning.
const sums = "SHA256SUMS"

// empty has the directory for the results be there and hold nothing but the mark. What no build has filled is not deleted, nor what
// holds the checkout or the home directory.
func (r *release) empty() error {
	home, _ := os.UserHomeDir() // "": there is none
	for _, keep := range []string{r.source, home} {
		if keep != "" && within(r.out, keep) {
			return fmt.Errorf("-out %s would delete %s", r.out, keep)
		}
	}
	held, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(filepath.Join(r.out, sums)); len(held) > 0 && err != nil {
		return fmt.Errorf("-out %s is not empty and holds no %s, so it is no earlier build's: name another directory, or delete it yourself", r.out, sums)
	}
	return errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755), os.WriteFile(filepath.Join(r.out, sums), nil, 0o644)) //nolint:gosec // results are for everyone
}

// within reports whether a path is a directory or lies below it, also by other names.
func within(dir, path string) bool {
	real := func(name string) string {
		if found, err := filepath.EvalSymlinks(name); err == nil {
			return found
		}
		return name
	}
	from, err := filepath.Rel(real(dir), real(path))
	return err == nil && from != ".." && !strings.HasPrefix(from, "../")
}

// release builds everything for one architecture but the image. own is the program for this machine.
func (r *release) release(arch, own string) error {
	program := filepath.Join(r.work, arch)
	if err := r.build(arch, program); err != nil {
		return err
	}
	files, err := r.tree(program, own)
	if err != nil {
		return err
	}
	base := filepath.Join(r.out, "toold-"+r.version+"-linux-"+arch)
	bill, err := r.bill(program)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(base+".cdx.json", bill, 0o644), //nolint:gosec // results are for everyone
		r.archive(files, base+".tar.gz"), r.packages(files, arch))
}

// versions are those of releases. Both kinds of packages, and Go, have an order for them.
var versions = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// identify finds out what is built: the version, unless it was given, and the time of the commit.
func (r *release) identify() error {
	said, err := r.git("log", "-1", "--format=%ct %H")
	if err != nil {
		return err
	}
	seconds, commit, _ := strings.Cut(said, " ")
	since, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), seconds), 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	r.made = time.Unix(since, 0).UTC()
	if r.version == "" {
		r.version, err = r.git("describe", "--tags", "--exact-match", "--match=v*")
		if err != nil { // it has no tag
			r.version = "v0.0.0-" + r.made.Format("20060102150405") + "-" + commit[:12]
		}
	}
	if !versions.MatchString(r.version) {
		return fmt.Errorf("the version %q is not vMAJOR.MINOR.PATCH or vMAJOR.MINOR.PATCH-PRERELEASE", r.version)
	}
	changed, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		if !r.modified {
			return fmt.Errorf("the checkout has changes that are in no commit (-modified builds it all the same):\n%s", changed)
		}
		r.version += "+modified"
	}
	if r.source, err = filepath.Abs(r.source); err != nil {
		return err
	}
	r.out, err = filepath.Abs(r.out)
	return err
}

func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", r.source}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// releaseTags are the build tags of a release.
const releaseTags = "otel"

// build builds the program for an architecture of Linux: static, without paths of this machine.
func (r *release) build(arch, file string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", releaseTags,
		"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", file, "./cmd/toold")
	cmd.Dir, cmd.Stderr = r.source, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build for %s: %w", arch, err)
	}
	return nil
}

// checksums writes the SHA-256 of all results, as sha256sum(1) checks them.
func (r *release) checksums() error {
	results, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, result := range results {
		if result.Name() == sums {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, result.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), result.Name())
	}
	return os.WriteFile(filepath.Join(r.out, sums), []byte(lines.String()), 0o644) //nolint:gosec // results are for everyone
}
