package lease

import "testing"

// What becomes of the promises on a log that loses its last one to three
// segments after it has acknowledged them, once in so many steps. The figures
// are logged; README.md has them. What must never break, not even then, fails
// the test.
func TestModelOfALossyLog(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules rules
	}{
		{"losses while the owner lives", rules{lose: 1000, steady: true}},
		{"losses while the owner lives, of one replica", rules{lose: 1000, returns: 400, steady: true}},
		{"losses at any time, of one replica", rules{lose: 1000, returns: 400}},
		{"losses at any time", rules{lose: 1000}},
		{"losses at any time, and nothing is put back", rules{lose: 1000, noPutBack: true}},
		{"losses in the moment in which the owner dies", rules{lose: 1, loseAtDeath: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sum := counts{}
			for seed := range uint64(modelSteps(t) / episode) {
				w := newWorld(seed, c.rules)
				w.run()
				sum.add(w.counts)
				sum.add(w.verdict())
				for _, promise := range []string{"an owner that knows it is fenced shows nothing", "what is acknowledged was stored", "an owner can read the log"} {
					if w.broken[promise] != "" {
						t.Fatalf("seed %d: %s", seed, w.broken[promise])
					}
				}
			}
			t.Log(sum)
			// What is left is a base of several parts that is lost twice, in parts, and returns in between.
			if broken := sum["worlds with broken promises"]; c.rules.steady && broken*1000 > sum["worlds"] {
				t.Errorf("%d of %d worlds broke a promise although the owner lived", broken, sum["worlds"])
			}
		})
	}
}

// verdict returns which promises to clients a world has broken, and whether a
// node has seen that the log had diverged.
func (w *world) verdict() counts {
	c := counts{"worlds": 1}
	if w.counts["losses"] > 0 {
		c["worlds with losses"] = 1
	}
	delete(w.broken, "a replaced owner stores nothing") // it is the log that lets it, and no client sees it
	for promise := range w.broken {
		c["worlds that broke: "+promise] = 1
	}
	if len(w.broken) > 0 {
		c["worlds with broken promises"] = 1
		if w.counts["divergence seen by a reader"]+w.counts["divergence seen by an owner"] == 0 {
			c["worlds with broken promises that no node has seen"] = 1
		}
	}
	return c
}
