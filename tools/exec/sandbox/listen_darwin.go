package sandbox

import (
	"context"
	"errors"
	"net"
)

// Listening returns nothing: on macOS a confined process does not listen.
func (p *Process) Listening() []Listening { return nil }

// Dial returns errors.ErrUnsupported.
func (p *Process) Dial(context.Context, int) (*net.TCPConn, error) { return nil, errors.ErrUnsupported }
