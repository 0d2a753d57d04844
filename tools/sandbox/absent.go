package sandbox

// Protected paths at which nothing stands. Nothing can be put on them to protect them, so what a process brings into being
// there is taken away afterwards.

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// absences are paths at which nothing stood when the process was started.
type absences []string

// takeAway moves what stands there now aside, so that nothing is lost and nobody finds it by its name, and says so.
func (a absences) takeAway() (denials []Denial) {
	for _, path := range a {
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		aside := filepath.Join(filepath.Dir(path), fmt.Sprintf(".denied-%s-%x", filepath.Base(path), time.Now().UnixNano()))
		if os.Rename(path, aside) == nil {
			denials = append(denials, Denial{Operation: Writing, Target: path, Count: 1, MovedTo: aside})
		}
	}
	return denials
}
