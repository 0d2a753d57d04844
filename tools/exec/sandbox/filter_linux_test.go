package sandbox

import (
	"os"
	"testing"
)

// What is shut for others' sake is not shut for what a process does with its own.
func TestOwnIsNotOthers(t *testing.T) {
	tests := []struct{ name, script, fast, full string }{
		{"a pipe with a name", "mkfifo p; echo through >p & cat p", "through\n", "through\n"},
		{"its own output by name", "echo one >/dev/stdout; echo two >/proc/self/fd/1", "one\ntwo\n", "one\ntwo\n"},
		{"a terminal of its own", "exec 3<>/dev/ptmx && echo opened", "", "opened\n"},
		{"shared memory", "echo kept >/dev/shm/x && cat /dev/shm/x", "", "kept\n"},
		{"to another directory", "mkdir d e; echo moved >d/x; mv d/x e/y && mv e d && cat d/e/y", "moved\n", "moved\n"},
		{"its own priority", "nice -n 1 nice", "1\n", "1\n"},
		{"its own limits", "ulimit -n 64 && ulimit -n", "64\n", "64\n"},
		{"attributes of copies", "cp --preserve=all file copy && cat copy", "root/file\n", "root/file\n"},
	}
	tiers(t, func(t *testing.T, r *Runner, tier Tier) {
		for _, tt := range tests {
			want := tt.full
			if tier == Fast {
				want = tt.fast
			}
			s := newScene(t, tier)
			s.Places = s.Places[:2] // where something is hidden, Fast does not let new files be read
			if p, _ := s.run(t, r, tt.script); p.out.String() != want {
				t.Errorf("%s: %s\ngave %q, want %q; on stderr: %s", tt.name, tt.script, p.out, want, p.err)
			}
		}
	})
}

// All of a user's processes are not a process's own.
func TestPrioritiesOfAll(t *testing.T) {
	if os.Getuid() != 0 {
		skip(t, "run this as root: of others, the program that asks names the number, which is refused in any case")
	}
	r := newRunner(t)
	s := newScene(t, Fast)
	if p, _ := s.run(t, r, "renice -n 0 -u 0 && echo changed"); p.out.String() != "" { // which they have, as a rule
		t.Errorf("printed %q", p.out)
	}
}
