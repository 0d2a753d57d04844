//go:build !no_mcp

// Gives a server's tools names that model APIs take, and makes its words fit to be shown. Pure.

package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Model APIs take names of at most maxName characters; hashed is how many of them a hash takes, with the mark before it.
const (
	maxName = 64
	hashed  = 9
)

// prefix is what the names of all tools of a server begin with, as permission rules have it.
func prefix(server string) string { return Prefix(server) + "__" }

// named returns the name under which a tool is listed where nothing else wants the same.
func named(server, tool string) string {
	name := prefix(server) + safe(tool)
	if len(name) > maxName {
		return marked(server, tool)
	}
	return name
}

// marked returns a name that no other tool has: with a hash of what the server and the tool are really called.
func marked(server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	name := prefix(server) + safe(tool)
	return name[:min(len(name), maxName-hashed)] + "_" + hex.EncodeToString(sum[:])[:hashed-1]
}

// distinct returns the tools of a server their names. Of several that come to the same name the one that is really called so
// keeps it, and the rest are marked, so that no name depends on the order of a list.
func distinct(server string, tools []string) []string {
	wanted := map[string]int{}
	for _, tool := range tools {
		wanted[named(server, tool)]++
	}
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = named(server, tool)
		if wanted[names[i]] > 1 && safe(tool) != tool {
			names[i] = marked(server, tool)
		}
	}
	return names
}

// clean takes out what a reader would not see and a model would: control characters, marks of direction and of width, tags,
// and what is no UTF-8.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError, unicode.Is(unicode.Cc, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Cs, r), unseen(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// unseen reports characters of the category Cf and others without a form of their own. The joiners stay: scripts and emoji need
// them.
func unseen(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if r == nonJoiner || r == joiner {
		return false
	}
	return unicode.Is(unicode.Cf, r) || r >= 0xE0100 && r <= 0xE01EF || r == 0x3164 || r == 0x115F || r == 0x1160
}
