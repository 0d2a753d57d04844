// The marker by which a process is recognised after its parents have died.

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
)

// MarkerName is the variable that every process started here has. Its value is
// place.generation.call.number: place identifies the daemon's home, generation one run of a daemon
// there, and number the process.
const MarkerName = "TOOLD_CALL"

// Own reports whether a variable of that name is the sandbox's own, and set for each process.
func Own(name string) bool {
	switch name {
	case MarkerName, "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy", "GIT_HTTP_PROXY_AUTHMETHOD":
		return true
	}
	return false
}

// place returns the part of a marker that all daemons of one home share.
func place(home string) string {
	sum := sha256.Sum256([]byte(home))
	return hex.EncodeToString(sum[:8]) + "."
}
