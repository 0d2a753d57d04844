package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/daemon/checkpoint"
	"github.com/toold/toold/tools/fs/workspace"
)

func keep(t *testing.T, h *checkpoint.Hold, content string) (hash string) {
	t.Helper()
	hash, n, err := h.Keep(strings.NewReader(content), int64(len(content)))
	if err != nil || n != int64(len(content)) {
		t.Fatalf("%d bytes kept: %v", n, err)
	}
	return hash
}

// TestStoreGivesBack: a content is given back whole or not at all, once it has been kept, be it small or large.
func TestStoreGivesBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	store, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	hold := store.Hold()
	large := strings.Repeat("0123456789abcdef", 1<<17)
	for _, content := range []string{"", "small", large, large} {
		hash := keep(t, hold, content)
		if data, err := store.Read(hash); err != nil || string(data) != content {
			t.Errorf("%d bytes come back as %d: %v", len(content), len(data), err)
		}
		if !store.Has(hash) {
			t.Error("it is not there")
		}
	}
	if err := hold.Sync(); err != nil {
		t.Error(err)
	}
	hash := keep(t, hold, "torn")
	if err := os.WriteFile(filepath.Join(dir, hash[:2], hash), []byte("to"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{hash, strings.Repeat("0", 64), "", "../../etc/passwd", strings.Repeat("/", 64)} {
		if data, err := store.Read(bad); !errors.Is(err, checkpoint.ErrGone) {
			t.Errorf("%q gives %q, %v", bad, data, err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is %v, %v", info, err)
	}
}

// TestSweep: what no row names goes, then the oldest until the rest fits; what is held, or was asked for while the sweep
// ran, stays.
func TestSweep(t *testing.T) {
	t.Parallel()
	store, err := checkpoint.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	hold, held := store.Hold(), store.Hold()
	for _, name := range []string{"unnamed", "ancient", "old", "middle", "new", "late"} {
		kept[name] = keep(t, hold, name+strings.Repeat(".", 100-len(name)))
	}
	kept["held"] = keep(t, held, "held")
	hold.Release()
	now := time.Now()
	sweep := func(limit int64) {
		t.Helper()
		_, err := store.Sweep(func() (map[string]time.Time, error) {
			late := store.Hold()
			defer late.Release()
			keep(t, late, "late"+strings.Repeat(".", 96))
			return map[string]time.Time{
				kept["ancient"]: now.Add(-time.Hour), kept["old"]: now.Add(-3 * time.Minute), kept["middle"]: now.Add(-2 * time.Minute), kept["new"]: now,
			}, nil
		}, limit, now.Add(-30*time.Minute), time.Time{})
		if err != nil {
			t.Error(err)
		}
	}
	left := func() (names []string) {
		for name, hash := range kept {
			if store.Has(hash) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	sweep(1 << 20)
	if got := left(); !slices.Equal(got, []string{"held", "late", "middle", "new", "old"}) {
		t.Errorf("%q are left", got)
	}
	if store.Due(1 << 20) {
		t.Error("a sweep is due right after one")
	}
	sweep(304)
	if got := left(); !slices.Equal(got, []string{"held", "late", "middle", "new"}) {
		t.Errorf("%q are left of what has to fit", got)
	}
	sweep(0)
	if got := left(); !slices.Equal(got, []string{"held", "late"}) {
		t.Errorf("%q are left of nothing", got)
	}
}

// TestSweepOfWhatWasHeld: what was held when a sweep began stays, also when its row comes too late for the sweep to see
// and it is let go before the sweep removes anything.
func TestSweepOfWhatWasHeld(t *testing.T) {
	t.Parallel()
	store, err := checkpoint.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	hold := store.Hold()
	hash := keep(t, hold, "before")
	_, err = store.Sweep(func() (map[string]time.Time, error) {
		hold.Release()
		return nil, nil
	}, 1<<20, time.Now().Add(-time.Hour), time.Time{})
	if err != nil || !store.Has(hash) {
		t.Errorf("it is gone (%v)", err)
	}
}

// TestTornContent: what a loss of power has torn is not taken for kept: it is written again.
func TestTornContent(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"small", strings.Repeat("0123456789abcdef", 1<<17)} {
		dir := filepath.Join(t.TempDir(), "store")
		for _, torn := range []string{"", strings.Repeat("\x00", len(content))} {
			store, err := checkpoint.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			hash := keep(t, store.Hold(), content)
			if err := os.WriteFile(filepath.Join(dir, hash[:2], hash), []byte(torn), 0o600); err != nil {
				t.Fatal(err)
			}
			if store, err = checkpoint.Open(dir); err != nil {
				t.Fatal(err)
			}
			if store.Whole(hash) {
				t.Error("it is taken to be whole")
			}
			hold := store.Hold()
			keep(t, hold, content)
			if err := hold.Sync(); err != nil {
				t.Error(err)
			}
			if _, err := store.Read(hash); err != nil || !store.Whole(hash) {
				t.Errorf("%d bytes: kept, and yet %v", len(content), err)
			}
		}
	}
}

// TestSweepBesideKeeping: however sweeps and calls fall together, what a Hold has kept is there until it is released.
func TestSweepBesideKeeping(t *testing.T) {
	t.Parallel()
	store, err := checkpoint.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var sweeping, calls sync.WaitGroup
	sweeping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := store.Sweep(func() (map[string]time.Time, error) { return nil, nil }, 0, time.Now(), time.Time{}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for call := range 4 {
		calls.Go(func() {
			for n := range 50 {
				hold := store.Hold()
				content := []byte(fmt.Sprint((n + call) % 3))
				hash, _, err := hold.Keep(bytes.NewReader(content), 1)
				if err == nil {
					err = hold.Sync()
				}
				if data, gone := store.Read(hash); err != nil || gone != nil || !bytes.Equal(data, content) {
					t.Errorf("%q: %v, %v", data, err, gone)
				}
				hold.Release()
			}
		})
	}
	calls.Wait()
	close(stop)
	sweeping.Wait()
}

// TestQuotedNames: a name that could be taken for other lines of a diff is written as git writes it.
func TestQuotedNames(t *testing.T) {
	t.Parallel()
	store, err := checkpoint.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	hash := keep(t, store.Hold(), "x\n")
	after := workspace.Snapshot{Kind: workspace.Regular, Mode: 0o644, Hash: hash, Size: 2}
	for name, want := range map[string]string{
		"plain/a b.go": "b/plain/a b.go", "grün/日本": "b/grün/日本", "z\n--- a/victim": `"b/z\n--- a/victim"`, "a\tb\"c\\d": `"b/a\tb\"c\\d"`,
		"\x1b[2J\xff": `"b/\033[2J\377"`, "\u202egpj.sh": `"b/\342\200\256gpj.sh"`,
	} {
		d := checkpoint.Delta{Before: workspace.Snapshot{Kind: workspace.Absent}, After: after}
		store.Compare(&d, name)
		lines := strings.Split(d.Diff, "\n")
		if len(lines) != 7 || lines[3] != "+++ "+want || !strings.HasSuffix(lines[0], " "+want) {
			t.Errorf("%q is written as\n%s", name, d.Diff)
		}
	}
}

// TestCredential: names of files that hold credentials, and of those that are much like them and do not.
func TestCredential(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]bool{
		"/w/.env": true, "/w/.env.local": true, "/w/prod.env": true, "/w/.envrc": true, "/w/.env.example": false, "/w/env.go": false, "/w/.environment": false,
		"/w/id_rsa": true, "/w/id_ed25519": true, "/w/id_rsa.pub": false, "/w/id_map.go": false, "/w/identity": false,
		"/w/server.key": true, "/w/Server.PEM": true, "/w/key.go": false, "/w/.npmrc": true, "/w/.netrc": true, "/w/.git-credentials": true,
		"/h/.aws/config": true, "/h/.ssh/known_hosts": true, "/h/.sshd": false, "/w/credentials": true, "/w/credentials.go": false, "/w/vault.kdbx": true,
		"/w/main.go": false, "/w/terraform.tfvars": true, "/w/secrets.yml.example": false,
	} {
		if got := checkpoint.Credential(name); (got != "") != is {
			t.Errorf("%s: %q, want %v", name, got, is)
		}
	}
}
