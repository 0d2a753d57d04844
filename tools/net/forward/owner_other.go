//go:build !linux

package forward

import "net"

// isOwn reports false: only Linux reports whose a connection is.
func isOwn(*net.TCPConn) bool { return false }
