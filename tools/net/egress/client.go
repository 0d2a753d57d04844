// The clients of a proxy: what each may reach, and what is asked about while its connection waits.

package egress

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
)

// A Client is who has sent a request to a proxy.
type Client struct {
	Policy Policy // its lists must not change any more
	// Ask is called for a host that no entry of Policy.Allowed names, in canonical form, while the
	// request waits. An empty result permits the host, at every port; another one is the reason of
	// the refusal. Nothing has been looked up for the host. Ask returns when ctx ends, which it does
	// when the client closes the connection. nil: nothing is asked about. It is not called for an
	// address that is not public or this machine's own, nor for a name of this machine.
	Ask func(ctx context.Context, host string, port uint16) Reason
	// Refused, which may be nil, is called for each refusal, before the response.
	Refused func(Refusal)
}

// Clients returns the client of a connection, by the connection's remote address and the user name
// of the request's basic proxy credentials, which the client chooses freely. false: it is not
// known, and its requests are refused. Clients and the functions of a Client must be safe for
// concurrent use; they are called on the goroutine of a request.
type Clients func(remote, user string) (Client, bool)

// permit returns the policy by which the host is dialled, or why it must not be.
func (c *Client) permit(ctx context.Context, host string, port uint16) (Policy, *Refusal) {
	refusal := c.Policy.Check(host, port)
	if refusal == nil || refusal.Reason != NotAllowed || c.Ask == nil || !askable(refusal.Host) {
		return c.Policy, refusal
	}
	if refusal.Reason = c.Ask(ctx, refusal.Host, port); refusal.Reason != "" {
		return c.Policy, refusal
	}
	permitted := c.Policy
	permitted.Allowed = append(slices.Clip(permitted.Allowed), refusal.Host)
	return permitted, nil // what else is wrong with the host the Dialer finds
}

// askable reports whether a yes could let a canonical host be reached, as far as that is known
// without a look-up.
func askable(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		plain := address.WithZone("").Unmap()
		return special(plain) == "" && !isOwn(plain)
	}
	return !isLocal(host)
}

// fail answers a request that has failed.
func (c *Client) fail(w http.ResponseWriter, err error) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		http.Error(w, "The proxy could not get an answer: "+err.Error(), http.StatusBadGateway)
		return
	}
	if c.Refused != nil {
		c.Refused(*refusal)
	}
	http.Error(w, refusal.Error(), http.StatusForbidden)
}
