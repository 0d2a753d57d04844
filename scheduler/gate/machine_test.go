// What is read of a machine, whose files are in a directory here.

package gate

import (
	"os"
	"path/filepath"
	"testing"
)

// meminfo is the file as Linux writes it, without most of it.
const meminfo = "MemTotal:       24684092 kB\nMemFree:        19034188 kB\nMemAvailable:   23812584 kB\nHugePages_Total:       0\n"

const pressure = "some avg10=12.50 avg60=1.35 avg300=1.17 total=15910693\nfull avg10=0.22 avg60=0.42 avg300=0.56 total=11377180\n"

// TestReadMachine: of the machine's memory and the limits of the control groups of either version, the least counts, and what cannot
// be read is not known.
func TestReadMachine(t *testing.T) {
	t.Parallel()
	const total, available = 24684092 << 10, 23812584 << 10
	limited := map[string]string{
		"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/docker/1\n3:cpu,cpuacct:/\n0::/user/app\n",
		"sys/fs/cgroup/user/app/memory.max": "max\n", "sys/fs/cgroup/user/memory.max": "4000000000\n",
		"sys/fs/cgroup/user/memory.current": "3500000000\n", "sys/fs/cgroup/user/memory.stat": "anon 1\ninactive_file 1000000000\nactive_file 7\n",
	}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, files := range []map[string]string{limited, more} {
			for name, text := range files {
				all[name] = text
			}
		}
		return all
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  Machine
	}{
		{"nothing", nil, Machine{}},
		{"a machine", map[string]string{"proc/meminfo": meminfo}, Machine{Total: total, Available: available}},
		{"an old kernel", map[string]string{"proc/meminfo": "MemTotal: 5 kB\nMemFree: 3 kB\n"}, Machine{}},
		{"nonsense", map[string]string{"proc/meminfo": "MemTotal: 99999999999999999 kB\nMemAvailable: x kB\n"}, Machine{}},
		{"pressure", map[string]string{"proc/pressure/memory": pressure, "proc/pressure/cpu": "some avg10=200.00 avg60=0"}, Machine{MemoryPressure: 12.5}},
		{"a group of version 2 above its own", limited, Machine{Total: 4_000_000_000, Available: 1_500_000_000}},
		{"a container of version 1, which sees its own group as the root", with(map[string]string{
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1900000000\n",
			"sys/fs/cgroup/memory/memory.stat": "inactive_file 5\ntotal_inactive_file 100000000\n",
		}), Machine{Total: 2_000_000_000, Available: 200_000_000}},
		{"version 1 without a limit", with(map[string]string{"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "9223372036854771712\n"}), Machine{Total: 4_000_000_000, Available: 1_500_000_000}},
		{"a group within one that others fill", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/all/own\n", "sys/fs/cgroup/all/own/memory.max": "4000000000", "sys/fs/cgroup/all/own/memory.current": "1000000000",
			"sys/fs/cgroup/all/memory.max": "6000000000", "sys/fs/cgroup/all/memory.current": "5900000000",
		}, Machine{Total: 4_000_000_000, Available: 100_000_000}},
		{"more used than allowed", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "2000",
		}, Machine{Total: 1000}},
	} {
		root := t.TempDir()
		for name, text := range test.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := ReadMachine(root); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// FuzzMachine: whatever the files have in them, what is read of them is possible.
func FuzzMachine(f *testing.F) {
	f.Add([]byte(meminfo), []byte(pressure), []byte("4:memory:/a/b\n0::/c\n"))
	f.Add([]byte("MemTotal: 9007199254740991 kB\nMemAvailable: 9007199254740992 kB\n"), []byte("some avg10=NaN total"), []byte("1:memory,,x:/../..\n::\n0::relative"))
	f.Add([]byte("MemTotal:\nMemAvailable: -1 kB"), []byte("some avg10=-1 "), []byte("0::/\n:"))
	f.Fuzz(func(t *testing.T, memory, pressed, groups []byte) {
		if m := parseMeminfo(memory); m.Total < 0 || m.Available < 0 || m.Available > m.Total {
			t.Errorf("of %d bytes %d are available", m.Total, m.Available)
		}
		if p := parsePressure(pressed); !(p >= 0 && p <= 100) {
			t.Errorf("a pressure of %v", p)
		}
		for _, group := range parseGroups(groups) {
			steps := 0
			for ; group != ""; group = above(group) {
				if steps++; group[0] != '/' || filepath.Clean(group) != group || steps > len(groups)+1 {
					t.Fatalf("a group %q after %d steps", group, steps)
				}
			}
		}
	})
}
