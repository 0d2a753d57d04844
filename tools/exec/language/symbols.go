//go:build !no_lsp

// Requests that are answered with symbols: outlines, searches, and calls of functions.

package language

import (
	"cmp"
	"context"
	"encoding/json"
)

// Outline returns the symbols of the file, each after the one that encloses it.
func (s *Set) Outline(ctx context.Context, q Query) ([]Symbol, error) {
	return ask(ctx, s, q, "documentSymbolProvider", "document_symbols", func(a *asked) ([]Symbol, error) {
		var answer []wireSymbol
		err := a.callAbout("textDocument/documentSymbol", &answer)
		return a.outline(nil, answer, 0), err
	})
}

func (a *asked) outline(found []Symbol, list []wireSymbol, depth int) []Symbol {
	for _, w := range list {
		w.URI = uriOf(a.query.Path)
		found = append(found, a.symbol(w, depth))
		found = a.outline(found, w.Children, depth+1)
	}
	return found
}

// symbol converts a symbol. Its location is in one of three fields.
func (a *asked) symbol(w wireSymbol, depth int) Symbol {
	at := wireLocation{URI: w.URI}
	if w.Location != nil {
		at = *w.Location
	} else if within := cmp.Or(w.Chosen, w.Range); within != nil {
		at.Range = *within
	}
	return Symbol{
		Name: printable(w.Name, 500), Kind: nth(kinds, w.Kind, "symbol"), Detail: printable(w.Detail, 500), Container: printable(w.Container, 500),
		Depth: depth, Location: a.location(at),
	}
}

// Search returns symbols of the whole project by a part of their name, in the server's order. The
// file determines the server.
func (s *Set) Search(ctx context.Context, q Query, name string) ([]Symbol, error) {
	return ask(ctx, s, q, "workspaceSymbolProvider", "workspace_symbols", func(a *asked) (found []Symbol, err error) {
		var answer []wireSymbol
		err = a.call(ctx, "workspace/symbol", map[string]any{"query": name}, &answer)
		for _, w := range answer {
			found = append(found, a.symbol(w, 0))
		}
		return found, err
	})
}

// Calls returns the callers of the function at the position, and the functions that it calls. If
// there is no function, Of has no name.
func (s *Set) Calls(ctx context.Context, q Query) (Calls, error) {
	return ask(ctx, s, q, "callHierarchyProvider", "call_hierarchy", func(a *asked) (calls Calls, err error) {
		var items []json.RawMessage // each is sent back to the server unchanged
		err = a.callAt("textDocument/prepareCallHierarchy", wirePlace{}, &items)
		if err != nil || len(items) == 0 {
			return calls, err
		}
		var of wireSymbol
		_ = json.Unmarshal(items[0], &of) // without a name there is no function
		calls.Of = a.symbol(of, 0)
		if calls.Incoming, err = a.calls("callHierarchy/incomingCalls", items[0], of.URI); err == nil {
			calls.Outgoing, err = a.calls("callHierarchy/outgoingCalls", items[0], of.URI)
		}
		return calls, err
	})
}

// calls requests one direction. The positions of calls are in the caller's file: that of each
// caller, or the function's own.
func (a *asked) calls(method string, item json.RawMessage, own string) (found []Call, err error) {
	var answer []wireCall
	err = a.call(a.ctx, method, map[string]any{"item": item}, &answer)
	for _, w := range answer {
		end, in := w.To, wireLocation{URI: own}
		if w.From != nil {
			end, in.URI = w.From, w.From.URI
		}
		if end == nil {
			continue
		}
		call := Call{Symbol: a.symbol(*end, 0)}
		for _, in.Range = range w.At {
			call.At = append(call.At, a.location(in).Range)
		}
		found = append(found, call)
	}
	return found, err
}
