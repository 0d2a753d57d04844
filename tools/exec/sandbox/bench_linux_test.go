package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkStart starts a bash that does nothing and waits for its end, with about as many places as a call's policy has.
// What that is beside os/exec, bench -sandbox says.
func BenchmarkStart(b *testing.B) {
	r := newRunner(b)
	for name, tier := range map[string]Tier{"none": None, "fast": Fast, "full": Full} {
		b.Run(name, func(b *testing.B) {
			s := newScene(b, tier)
			s.Strict = tier == Fast
			for n := range 20 {
				s.Places = append(s.Places, Place{Path: filepath.Join(s.base, "home", fmt.Sprint(n))})
				s.Absent = append(s.Absent, filepath.Join(s.root, fmt.Sprint(n)))
			}
			if got, err := r.Confinement(s.Policy); err != nil || got.Tier != tier {
				b.Skip("run this where the kernel has Landlock and lets users make namespaces")
			}
			c := Command{
				ID: "call", Path: bash, Args: []string{"bash", "--noprofile", "--norc", "-c", ":"}, Dir: s.root,
				Env: Environ(os.Environ()), Stdout: io.Discard, Stderr: io.Discard, Policy: s.Policy,
			}
			b.ReportAllocs()
			for b.Loop() {
				p, err := r.Start(c)
				if err != nil {
					b.Fatal(err)
				}
				if exit := p.Wait(); exit.Code != 0 {
					b.Fatalf("exit %+v", exit)
				}
			}
		})
	}
}
