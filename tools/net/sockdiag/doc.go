// Package sockdiag asks the kernel about sockets, on Linux. It does not know what they are for.
//
// A query goes through a socket of the family NETLINK_SOCK_DIAG, as sock_diag(7) describes it, and
// is answered for the network namespace that this socket was made in.
package sockdiag
