//go:build !no_lsp

// Requests that are answered with symbols: outlines, searches, and calls of functions.

package language

import (
	"context"
	"encoding/json"
)

// Outline returns the symbols of the file, each after the one that encloses it.
func (s *Set) Outline(ctx context.Context, q Query) (found []Symbol, err error) {
	err = s.ask(ctx, q, func(c abilities) json.RawMessage { return c.DocumentSymbols }, "document_symbols", func(a *asked) error {
		var answer []wireSymbol
		if err := a.call(ctx, "textDocument/documentSymbol", wirePlace{Document: wireDocument{URI: uriOf(q.Path)}}, &answer); err != nil {
			return err
		}
		found = a.outline(nil, answer, 0, &lines{})
		return nil
	})
	return found, err
}

func (a *asked) outline(found []Symbol, list []wireSymbol, depth int, reader *lines) []Symbol {
	for _, w := range list {
		w.URI = uriOf(a.query.Path)
		found = append(found, a.symbol(w, depth, reader))
		found = a.outline(found, w.Children, depth+1, reader)
	}
	return found
}

// symbol converts a symbol. Its location is in one of three fields.
func (a *asked) symbol(w wireSymbol, depth int, reader *lines) Symbol {
	at := wireLocation{URI: w.URI}
	switch {
	case w.Location != nil:
		at = *w.Location
	case w.Chosen != nil:
		at.Range = *w.Chosen
	case w.Range != nil:
		at.Range = *w.Range
	}
	return Symbol{
		Name: printable(w.Name, 500), Kind: kindOf(w.Kind), Detail: printable(w.Detail, 500), Container: printable(w.Container, 500),
		Depth: depth, Location: reader.location(a, at),
	}
}

// Search returns symbols of the whole project by a part of their name, in the server's order. The
// file determines the server.
func (s *Set) Search(ctx context.Context, q Query, name string) (found []Symbol, err error) {
	err = s.ask(ctx, q, func(c abilities) json.RawMessage { return c.WorkspaceSymbols }, "workspace_symbols", func(a *asked) error {
		var answer []wireSymbol
		if err := a.call(ctx, "workspace/symbol", map[string]any{"query": name}, &answer); err != nil {
			return err
		}
		found, err = a.symbols(ctx, answer)
		return err
	})
	return found, err
}

func (a *asked) symbols(ctx context.Context, list []wireSymbol) (found []Symbol, err error) {
	reader := lines{}
	for _, w := range list {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		found = append(found, a.symbol(w, 0, &reader))
	}
	return found, nil
}

// Calls returns the callers of the function at the position, and the functions that it calls. If
// there is no function, Of has no name.
func (s *Set) Calls(ctx context.Context, q Query) (calls Calls, err error) {
	err = s.ask(ctx, q, func(c abilities) json.RawMessage { return c.Calls }, "call_hierarchy", func(a *asked) error {
		var items []json.RawMessage // each is sent back to the server unchanged
		err := a.callAt(ctx, "textDocument/prepareCallHierarchy", wirePlace{}, &items)
		if err != nil || len(items) == 0 {
			return err
		}
		var of wireSymbol
		_ = json.Unmarshal(items[0], &of) // without a name there is no function
		calls = Calls{Of: a.symbol(of, 0, &lines{})}
		if calls.Incoming, err = a.calls(ctx, "callHierarchy/incomingCalls", items[0], of.URI); err != nil {
			return err
		}
		calls.Outgoing, err = a.calls(ctx, "callHierarchy/outgoingCalls", items[0], of.URI)
		return err
	})
	return calls, err
}

// calls requests one direction. The positions of calls are in the caller's file: that of each
// caller, or the function's own.
func (a *asked) calls(ctx context.Context, method string, item json.RawMessage, own string) (found []Call, err error) {
	var answer []wireCall
	if err := a.call(ctx, method, map[string]any{"item": item}, &answer); err != nil {
		return nil, err
	}
	var reader, inside lines
	for _, w := range answer {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		end, in := w.From, wireLocation{}
		if end != nil {
			in.URI = end.URI
		} else {
			end, in.URI = w.To, own
		}
		if end == nil {
			continue
		}
		call := Call{Symbol: a.symbol(*end, 0, &reader)}
		for _, in.Range = range w.At {
			call.At = append(call.At, inside.location(a, in).Range)
		}
		found = append(found, call)
	}
	return found, nil
}
