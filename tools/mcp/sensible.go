//go:build !no_mcp

// What a server may ask and tell. The SDK takes more than is served here, and looks into messages that a server has left half
// empty; one that makes it panic would end the daemon.

package mcp

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// heard are the messages of a server that are taken, and whether they say something by their parameters.
var heard = map[string]bool{
	"ping": false, "roots/list": false, "notifications/cancelled": false, "notifications/tools/list_changed": false,
	"elicitation/create": true, "notifications/message": true, "notifications/progress": true,
}

// sensible lets through what is taken and has what it needs. Other requests are refused, other notifications are not looked at.
func sensible(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		speaks, taken := heard[method]
		switch {
		case taken && (!speaks || says(request)):
			return next(ctx, method, request)
		case strings.HasPrefix(method, "notifications/"):
			return nil, nil
		case taken:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + " says nothing"}
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("%s is not served", method)}
	}
}

// says reports that a message has parameters.
func says(request sdk.Request) bool {
	params := reflect.ValueOf(request.GetParams())
	return params.IsValid() && !(params.Kind() == reflect.Pointer && params.IsNil())
}
