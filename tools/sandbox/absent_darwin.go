package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// takeAway moves what stands there now aside and says so.
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
