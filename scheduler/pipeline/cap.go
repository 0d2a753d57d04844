package pipeline

// Keeps results short: what does not fit inline goes to a file that the result names. Knows nothing of tools.

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// DefaultMaxChars is how much text a result holds inline when its tool says nothing else.
const DefaultMaxChars = 30_000

// capped shortens the text of a result to maxChars characters, all blocks together, and keeps the whole of it in the
// folder under name. A result that its tool has already shortened is left as it is.
func capped(ended Ended, maxChars int, folder *spool.Dir, name string) Ended {
	if ended.Spill != nil {
		return ended
	}
	left := maxChars
	for i := range ended.Content {
		text := ended.Content[i].Text
		count := utf8.RuneCountInString(text)
		if count <= left {
			left -= count
			continue
		}
		head := headOf(text, left)
		omitted := tools.Spill{
			Bytes: int64(len(text) - len(head)),
			Lines: int64(strings.Count(text[len(head):], "\n")),
		}
		path, err := folder.Spill(name, text)
		where := "the whole is in " + path
		if err != nil {
			where = fmt.Sprintf("and it could not be kept: %v", err)
		}
		omitted.Path = path
		blocks := append([]tools.Block(nil), ended.Content...)
		blocks[i].Text = fmt.Sprintf("%s\n[%d lines (%d bytes) left out; %s]", head, omitted.Lines, omitted.Bytes, where)
		ended.Content, ended.Spill = blocks, &omitted
		return ended
	}
	return ended
}

// headOf is the longest run of whole lines within max characters, or max characters when the first line is longer.
func headOf(text string, max int) string {
	end, count := 0, 0
	for end < len(text) && count < max {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
		count++
	}
	if line := strings.LastIndexByte(text[:end], '\n'); line > 0 {
		return text[:line]
	}
	return text[:end]
}
