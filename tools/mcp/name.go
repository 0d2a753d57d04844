//go:build !no_mcp

// Names for a server's tools that model APIs accept, and texts that can be shown. Pure.

package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Model APIs accept names of at most maxName characters. hashed is the length of a hash with its
// separator.
const (
	maxName = 64
	hashed  = 9
)

// prefix returns the prefix of the names of a server's tools, as permission rules use it.
func prefix(server string) string { return Prefix(server) + "__" }

// named returns the name of a tool if no other tool has the same one.
func named(server, tool string) string {
	name := prefix(server) + safe(tool)
	if len(name) > maxName {
		return marked(server, tool)
	}
	return name
}

// marked returns a unique name: with a hash of the original names of the server and the tool.
func marked(server, tool string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	name := prefix(server) + safe(tool)
	return name[:min(len(name), maxName-hashed)] + "_" + hex.EncodeToString(sum[:])[:hashed-1]
}

// distinct returns names for the tools of a server. If several would have the same name, the one
// whose original name it is keeps it, and the rest get a hash, so that no name depends on the order
// of a list.
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

// clean removes what a model sees but a user does not: control characters, marks of direction and
// of width, tags, and invalid UTF-8.
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

// unseen reports whether r is invisible: of the category Cf, or another character without a glyph.
// Joiners are kept: scripts and emoji need them.
func unseen(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	if r == nonJoiner || r == joiner {
		return false
	}
	return unicode.Is(unicode.Cf, r) || r >= 0xE0100 && r <= 0xE01EF || r == 0x3164 || r == 0x115F || r == 0x1160
}
