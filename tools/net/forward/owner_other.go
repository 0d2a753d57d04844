//go:build !linux

package forward

import "net"

// isOwn reports false: only Linux reports which user a connection belongs to.
func isOwn(*net.TCPConn) bool { return false }
