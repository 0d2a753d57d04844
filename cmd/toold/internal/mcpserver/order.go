package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// placeKey is where a call's params carry its place through the SDK.
const placeKey = "toold/place"

// An order is the line of calls that have been read and not yet been sent. The zero value is empty.
type order struct {
	mu     sync.Mutex
	number uint64
	line   []*place
}

// A place is a call's place in the line. A nil one is nowhere in it and does not wait.
type place struct {
	order  *order
	number uint64
	first  chan struct{} // closed when no place is in front
}

// admit puts a request at the end of the line if it is a call; nil: it is none, or none that the SDK will take.
func (o *order) admit(request *jsonrpc.Request) *place {
	if request.Method != "tools/call" {
		return nil
	}
	var params, meta map[string]json.RawMessage
	if json.Unmarshal(request.Params, &params) != nil || params == nil {
		return nil
	}
	if json.Unmarshal(params["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	meta[placeKey] = strconv.AppendUint(nil, o.number+1, 10)
	var err error
	if params["_meta"], err = json.Marshal(meta); err != nil {
		return nil
	}
	marked, err := json.Marshal(params)
	if err != nil {
		return nil
	}
	request.Params = marked
	o.number++
	p := &place{order: o, number: o.number, first: make(chan struct{})}
	if o.line = append(o.line, p); len(o.line) == 1 {
		close(p.first)
	}
	return p
}

// placeOf finds the place that params carry.
func (o *order) placeOf(params *mcp.CallToolParamsRaw) *place {
	number, _ := params.Meta[placeKey].(float64) // exact up to 2^53 calls
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.line {
		if p.number == uint64(number) {
			return p
		}
	}
	return nil
}

// pass takes a place out of the line, if it is still there.
func (o *order) pass(p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.Index(o.line, p)
	if at < 0 {
		return
	}
	o.line = slices.Delete(o.line, at, at+1)
	if at == 0 && len(o.line) > 0 {
		close(o.line[0].first)
	}
}

// pass lets the calls behind the place begin; see order.pass.
func (p *place) pass() {
	if p != nil {
		p.order.pass(p)
	}
}

// wait returns when all that came before has been sent.
func (p *place) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
