package index

import "testing"

func TestWritable(t *testing.T) {
	for line, want := range map[string]uint64{
		"7f00-7f01 rw-s 00000000 08:02 173521                     /home/u/file":            173521,
		"7f00-7f01 r--s 00000000 08:02 173521                     /home/u/fi le (deleted)": 173521,
		"7f00-7f01 rw-p 00000000 08:02 173521                     /usr/lib/x.so":           0,
		"7f00-7f01 rw-s 00000000 00:01 0 /dev/zero":                                        0,
		"7f00-7f01 rw-p 00000000 00:00 0 ":                                                 0,
		"":                                                                                 0, "nonsense": 0, "a b c d e f": 0, "a rs d d e f": 0,
	} {
		if got, ok := writable([]byte(line)); got != want || ok != (want != 0) {
			t.Errorf("%q: inode %d, %v, want %d", line, got, ok, want)
		}
	}
}

func FuzzWritable(f *testing.F) {
	f.Add([]byte("7f00-7f01 rw-s 00000000 08:02 173521 /home/u/file"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if inode, ok := writable(line); ok && inode == 0 {
			t.Error("a mapping of no file")
		}
	})
}
