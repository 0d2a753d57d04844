//go:build !no_mcp

// A filter for what a server sends. The SDK accepts more than is served here, and reads fields of
// messages that a server has left empty; a message that makes it panic would end the daemon.

package mcp

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// heard are the accepted messages of a server, and whether they must have parameters.
var heard = map[string]bool{
	"ping": false, "roots/list": false, "notifications/cancelled": false, "notifications/tools/list_changed": false,
	"elicitation/create": true, "notifications/message": true, "notifications/progress": true,
}

// sensible passes on accepted messages that have what they need. Other requests are refused, and
// other notifications ignored.
func sensible(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		speaks, taken := heard[method]
		params := reflect.ValueOf(request.GetParams())
		switch {
		case taken && (!speaks || params.IsValid() && !(params.Kind() == reflect.Pointer && params.IsNil())):
			return next(ctx, method, request)
		case strings.HasPrefix(method, "notifications/"):
			return nil, nil
		case taken:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + " has no parameters"}
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%s is not served", method)}
	}
}
