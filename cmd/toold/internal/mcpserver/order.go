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

// An order is the line of calls that have been read and not yet been sent, each by its place: a number that grows. The zero
// value is empty, and 0 is a place nowhere in it.
type order struct {
	mu    sync.Mutex
	last  uint64
	line  []uint64
	moved chan struct{} // closed when a place leaves the line; nil: no call waits
}

// admit puts a request at the end of the line if it is a call; 0: it is none, or none that the SDK will take.
func (o *order) admit(request *jsonrpc.Request) (place uint64) {
	var params, meta map[string]json.RawMessage
	if request.Method != "tools/call" || json.Unmarshal(request.Params, &params) != nil || params == nil {
		return 0
	}
	if json.Unmarshal(params["_meta"], &meta) != nil || meta == nil {
		meta = map[string]json.RawMessage{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	meta[placeKey] = strconv.AppendUint(nil, o.last+1, 10)
	marked, err := json.Marshal(meta)
	if params["_meta"] = marked; err == nil {
		marked, err = json.Marshal(params)
	}
	if err != nil {
		return 0
	}
	request.Params = marked
	o.last++
	o.line = append(o.line, o.last)
	return o.last
}

// placeOf returns the place that params carry.
func placeOf(params *mcp.CallToolParamsRaw) uint64 {
	number, _ := params.Meta[placeKey].(float64) // exact up to 2^53 calls
	return uint64(number)
}

// pass lets the calls behind a place begin, if it is still in the line.
func (o *order) pass(place uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := slices.Index(o.line, place)
	if at < 0 {
		return
	}
	o.line = slices.Delete(o.line, at, at+1)
	if o.moved != nil {
		close(o.moved)
		o.moved = nil
	}
}

// wait returns when all that came before a place has been sent.
func (o *order) wait(ctx context.Context, place uint64) error {
	for {
		moved := o.ahead(place)
		if moved == nil {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ahead returns a channel that is closed when the line has moved; nil: no place is ahead of this one.
func (o *order) ahead(place uint64) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Index(o.line, place) <= 0 {
		return nil
	}
	if o.moved == nil {
		o.moved = make(chan struct{})
	}
	return o.moved
}
