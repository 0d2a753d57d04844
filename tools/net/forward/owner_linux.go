package forward

import (
	"net"
	"os"

	"github.com/toold/toold/tools/net/sockdiag"
)

// isOwn reports whether a process of the daemon's own user has made the connection and still has
// it. The loopback is open to all users of the machine.
func isOwn(c *net.TCPConn) bool {
	diag, err := sockdiag.Open()
	if err != nil {
		return false
	}
	defer diag.Close()
	here, there := c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()
	far, ok := sockdiag.Connected(diag, there, here)
	return ok && far.Inode != 0 && far.UID == os.Geteuid()
}
