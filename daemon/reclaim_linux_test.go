package daemon

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/bench/wire"
)

func TestUnchangedFiles(t *testing.T) {
	const smaps = `00400000-013c5000 r-xp 00000000 fe:00 10141924                           /usr/bin/a program
Size:              16148 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me 
013c5000-0248d000 r--p 00fc5000 fe:00 10141924                           /usr/bin/a program
Anonymous:            16 kB
0248d000-0264d000 rw-p 0208d000 fe:00 10141924                           /usr/bin/a program
Anonymous:             0 kB
216a2000000-216a2c00000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7f0e24400000-7f0e24410000 r--s 00000000 fe:00 12                         /var/lib/shared
Anonymous:             0 kB
7f0e246c8000-7f0e2481e000 r-xp 00026000 fe:00 326269                     /usr/lib/libc.so.6 (deleted)
Anonymous:             0 kB
7ffd1d5f4000-7ffd1d5f6000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x13c5000}, {0x7f0e246c8000, 0x7f0e2481e000}}
	if got := unchangedFiles(strings.NewReader(smaps)); !slices.Equal(got, want) {
		t.Errorf("the unchanged files are at %x, want %x", got, want)
	}
}

func FuzzUnchangedFiles(f *testing.F) {
	f.Add("00400000-013c5000 r-xp 00000000 fe:00 1 /usr/bin/toold\nAnonymous:             0 kB\n")
	f.Add("Anonymous: 0 kB\n-  \n:\n")
	f.Fuzz(func(_ *testing.T, smaps string) { unchangedFiles(strings.NewReader(smaps)) })
}

// TestDropProgram drops the pages of this test while it runs on them.
func TestDropProgram(t *testing.T) {
	before, err := wire.Figure(os.Getpid(), "RssFile")
	if err != nil {
		t.Fatal(err)
	}
	dropProgram()
	after, err := wire.Figure(os.Getpid(), "RssFile")
	if err != nil {
		t.Fatal(err)
	}
	if after > before/2 {
		t.Errorf("of %d KiB of files in memory %d are left", before, after)
	}
}
