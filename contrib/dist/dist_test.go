package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// all reports whether what takes minutes is tried too: both architectures, a second build from nothing.
func all() bool { return os.Getenv("TOOLD_ALL") != "" }

// need skips without a program, but not where everything is to be run.
func need(t *testing.T, program, pack string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	why := program + " is not installed (apt-get install " + pack + ")"
	if os.Getenv("TOOLD_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// built builds a release from a clone of its own, and returns where the results are.
func built(t *testing.T, arches ...string) string {
	t.Helper()
	source, out := filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "out")
	run(t, "git", "clone", "--quiet", "--shared", "../..", source)
	r := release{source: source, out: out}
	if err := r.run(arches, ""); err != nil {
		t.Fatal(err)
	}
	return out
}

// one returns the only result whose name has the ending.
func one(t *testing.T, dir, ending string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "*"+ending))
	if len(found) != 1 {
		t.Fatalf("%d results end in %s", len(found), ending)
	}
	return found[0]
}

func TestRelease(t *testing.T) {
	arches := []string{runtime.GOARCH}
	if all() {
		arches = []string{"amd64", "arm64"}
	}
	out := built(t, arches...)
	t.Run("checksums", func(t *testing.T) { run(t, "sh", "-c", "cd "+out+" && sha256sum --check --strict SHA256SUMS") })
	t.Run("deb", func(t *testing.T) { tryDeb(t, one(t, out, "_"+runtime.GOARCH+".deb")) })
	t.Run("rpm", func(t *testing.T) { tryRPM(t, out) })
	t.Run("archive", func(t *testing.T) { tryArchive(t, out) })
	t.Run("same bytes", func(t *testing.T) {
		if all() {
			t.Setenv("GOCACHE", t.TempDir())
		}
		same(t, out, built(t, arches...))
	})
	if all() {
		t.Run("arm64", func(t *testing.T) { tryEmulated(t, out) })
	}
}

// checkout returns a new repository with one commit.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, "git", "init", "--quiet", dir)
	run(t, "git", "-C", dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--allow-empty", "--message=First")
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestVersions: what is not in the commit is not released under its name.
func TestVersions(t *testing.T) {
	source := checkout(t)
	identify := func(version string, modified bool) string {
		r := release{source: source, version: version, modified: modified}
		if err := r.identify(); err != nil {
			return "refused"
		}
		return r.version
	}
	for given, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1",
		"1.2.3": "refused", "v1.2": "refused", "v01.2.3": "refused", "v1.2.3/../x": "refused", "v1.2.3 -X main.x=y": "refused", "v1.2.3-": "refused",
	} {
		if got := identify(given, false); got != want {
			t.Errorf("%q is %s, not %s", given, got, want)
		}
	}
	if got := identify("", false); !strings.HasPrefix(got, "v0.0.0-") {
		t.Errorf("a commit without a tag is %s", got)
	}
	write(t, filepath.Join(source, "new.go"), "package new\n")
	if got := identify("v1.2.3", false) + " " + identify("v1.2.3", true); got != "refused v1.2.3+modified" {
		t.Errorf("a modified checkout is %s", got)
	}
}

// TestEmpty: only what a build has made is deleted.
func TestEmpty(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	source, link := filepath.Join(home, "src", "toold"), filepath.Join(t.TempDir(), "link")
	write(t, filepath.Join(source, "main.go"), "")
	write(t, filepath.Join(home, "photos", "one"), "")
	write(t, filepath.Join(home, "full", sums), "")
	write(t, filepath.Join(home, "full", "old"), "")
	write(t, filepath.Join(home, "src", sums), "")
	write(t, filepath.Join(home, "file"), "")
	if err := errors.Join(os.Mkdir(filepath.Join(home, "bare"), 0o700), os.Symlink(filepath.Join(home, "src"), link)); err != nil {
		t.Fatal(err)
	}
	for out, good := range map[string]bool{
		"full": true, "new/one": true, "bare": true, "src/toold/.bin/release": true,
		"photos": false, "src": false, "src/toold": false, ".": false, "..": false, "file": false, link: false,
	} {
		if !filepath.IsAbs(out) {
			out = filepath.Join(home, out)
		}
		r := release{source: source, out: out}
		if err := r.empty(); (err == nil) != good {
			t.Errorf("%s: %v", out, err)
		}
	}
	for name, there := range map[string]bool{"photos/one": true, "src/toold/main.go": true, "file": true, "full/old": false} {
		if _, err := os.Stat(filepath.Join(home, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// same checks that two builds gave the same files.
func same(t *testing.T, one, other string) {
	t.Helper()
	results, err := os.ReadDir(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		a, wrongA := os.ReadFile(filepath.Join(one, result.Name()))
		b, wrongB := os.ReadFile(filepath.Join(other, result.Name()))
		if err := errors.Join(wrongA, wrongB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not the same when it is built again (%v)", result.Name(), err)
		}
	}
}

// installed is what both kinds of packages have, among other files.
var installed = []string{
	"/usr/bin/toold", "/usr/lib/systemd/user/toold.service", "/usr/lib/systemd/user/toold.socket", "/usr/share/doc/toold/README.md",
	"/usr/share/bash-completion/completions/toold", "/usr/share/doc/toold/copyright", "/usr/share/doc/toold/docs/settings.md",
	"/usr/share/man/man1/toold.1.gz", "/usr/share/man/man1/toold-run.1.gz",
}

func tryDeb(t *testing.T, pack string) {
	need(t, "dpkg", "dpkg")
	root := t.TempDir()
	for _, dir := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dpkg := []string{"--root=" + root, "--log=/dev/null", "--force-not-root", "--force-bad-path"}
	run(t, "dpkg", append(dpkg, "--install", pack)...)
	list := strings.Fields(run(t, "dpkg", "--root="+root, "--listfiles", "toold"))
	for _, want := range installed {
		if _, err := os.Stat(filepath.Join(root, want)); err != nil || !slices.Contains(list, want) {
			t.Errorf("the package does not install %s (%v)", want, err)
		}
	}
	if said := run(t, filepath.Join(root, "usr/bin/toold"), "version"); !strings.Contains(said, "toold v") {
		t.Errorf("the installed program is %s", said)
	}
	run(t, "dpkg", append(dpkg, "--purge", "toold")...)
	if _, err := os.Lstat(filepath.Join(root, "usr")); err == nil {
		t.Errorf("the package leaves files when it is removed")
	}
}

func tryRPM(t *testing.T, out string) {
	need(t, "rpm", "rpm")
	name := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	said := strings.Fields(run(t, "rpm", "--query", "--package", "--list", one(t, out, name+".rpm")))
	for _, want := range installed {
		if !slices.Contains(said, want) {
			t.Errorf("the package does not have %s", want)
		}
	}
}

// tryArchive checks the program that people without a package manager get: it is static, and its bill of materials is its own.
func tryArchive(t *testing.T, out string) {
	dir := t.TempDir()
	run(t, "tar", "-xzf", one(t, out, runtime.GOARCH+".tar.gz"), "-C", dir, "--strip-components=1")
	program := filepath.Join(dir, "bin/toold")
	if said, err := exec.Command("ldd", program).CombinedOutput(); err == nil {
		t.Errorf("the program is not static:\n%s", said)
	}
	bill, err := os.ReadFile(one(t, out, runtime.GOARCH+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(run(t, "go", "version", "-m", program)) {
		words := strings.Fields(line)
		if len(words) >= 3 && words[0] == "dep" && !bytes.Contains(bill, []byte(`"pkg:golang/`+words[1]+"@"+words[2]+`"`)) {
			t.Errorf("the bill of materials lacks %s", line)
		}
	}
}

// tryEmulated runs the demo with the program for arm64 by qemu's emulator of user programs, which the kernel starts for such
// programs in a user namespace of this test alone.
func tryEmulated(t *testing.T, out string) {
	need(t, "qemu-aarch64-static", "qemu-user-static")
	dir := t.TempDir()
	run(t, "tar", "-xzf", one(t, out, "arm64.tar.gz"), "-C", dir, "--strip-components=1")
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Fatal(err)
	}
	// binfmt_misc(5): an ELF file of 64 bits for aarch64. F opens the emulator now, for every root.
	register := `:arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:` + emulator + ":F"
	script := `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf '%s' "$1" >/proc/sys/fs/binfmt_misc/register || exit 77
exec "$2" demo`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", register, filepath.Join(dir, "bin/toold"))
	cmd.Env = append(os.Environ(), "HOME="+dir)
	said, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() == 77 {
		t.Skipf("the kernel has no binfmt_misc in user namespaces (since Linux 6.7):\n%s", said)
	}
	if err != nil {
		t.Fatalf("toold demo on arm64: %v\n%s", err, said)
	}
}

// TestImage runs the demo in the image's file system, without a container engine. It needs the root file system of "make rootfs"
// in TOOLD_ROOTFS.
func TestImage(t *testing.T) {
	rootfs := os.Getenv("TOOLD_ROOTFS")
	if rootfs == "" {
		t.Skip(`TOOLD_ROOTFS names no root file system: "make rootfs" makes one`)
	}
	r := release{source: "../..", out: t.TempDir(), work: t.TempDir(), modified: true}
	program := filepath.Join(r.work, "toold")
	if err := errors.Join(r.identify(), r.build(runtime.GOARCH, program)); err != nil {
		t.Fatal(err)
	}
	tree, err := r.tree(program, program)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.image(tree, rootfs); err != nil {
		t.Fatal(err)
	}
	made, err := r.compose(tree, rootfs)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", root, "--no-same-owner")
	content := mutate.Extract(made)
	unpack.Stdin = content
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("the image cannot be unpacked: %v\n%s", err, out)
	}
	_, _ = io.Copy(io.Discard, content)
	// Three devices, each bound by itself in a mount namespace that ends with the test, and the machine's /dev nowhere.
	script := `set -e; cd "$1"; mount --bind . .; cd "$1"; mkdir -p proc dev old tmp
for d in null zero urandom; do : >dev/$d; mount --bind /dev/$d dev/$d; done
mount -t proc proc proc; pivot_root . old; cd /; umount -l old; exec /usr/bin/toold demo`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", root)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", "HOME=/root"}
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("toold demo in the image: %v\n%s", err, said)
	}
}
