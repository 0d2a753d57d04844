// Shortening of results: what does not fit inline goes to a file that the result names.

package pipeline

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/spool"
)

// DefaultMaxChars is how many characters of text a result holds inline if its tool has no limit of
// its own.
const DefaultMaxChars = 30_000

// capped shortens the text of a call's result to its tool's limit.
func (e Ended) capped(env *tools.Env) Ended {
	short := capped(tools.Result{Content: e.Content, Spill: e.Spill}, env.MaxChars, env.Spool, env.CallID)
	e.Content, e.Spill = short.Content, short.Spill
	return e
}

// capped shortens the text of a result to maxChars characters, all blocks together, and stores all
// of it in the folder under name. A result that its tool has already shortened stays unchanged.
func capped(result tools.Result, maxChars int, folder *spool.Dir, name string) tools.Result {
	if result.Spill != nil {
		return result
	}
	if within(result.Content, maxChars) {
		return result
	}
	var whole strings.Builder
	for _, block := range result.Content {
		whole.WriteString(block.Text)
	}
	shown, cut, blocks := shortened(result.Content, maxChars)
	rest := whole.String()[shown:]
	omitted := tools.Spill{Bytes: int64(len(rest)), Lines: int64(strings.Count(rest, "\n"))}
	if !strings.HasSuffix(rest, "\n") {
		omitted.Lines++
	}
	path, err := folder.Spill(name, whole.String())
	where := "the whole is in " + path
	if err != nil {
		where = fmt.Sprintf("and it could not be kept: %v", err)
	}
	omitted.Path = path
	blocks[cut].Text += fmt.Sprintf("\n[%d lines (%d bytes) left out; %s]", omitted.Lines, omitted.Bytes, where)
	result.Content, result.Spill = blocks, &omitted
	return result
}

// within reports whether the blocks have no more than maxChars characters of text together.
func within(content []tools.Block, maxChars int) bool {
	size := 0
	for _, block := range content {
		size += len(block.Text)
	}
	if size <= maxChars { // no text has more characters than bytes
		return true
	}
	chars := 0
	for _, block := range content {
		chars += utf8.RuneCountInString(block.Text)
	}
	return chars <= maxChars
}

// shortened returns the blocks with their text, together more than maxChars characters, cut to
// that; how many bytes of text they show; and the index of the block that was cut.
func shortened(content []tools.Block, maxChars int) (shown, cut int, blocks []tools.Block) {
	left, done := maxChars, false
	for _, block := range content {
		count := utf8.RuneCountInString(block.Text)
		switch {
		case count > 0 && done:
			continue
		case count > 0 && count > left:
			block.Text = headOf(block.Text, left)
			done, cut = true, len(blocks)
		}
		shown += len(block.Text)
		left -= count
		blocks = append(blocks, block)
	}
	return shown, cut, blocks
}

// headOf returns the longest prefix of whole lines within max characters, or max characters if the
// first line is longer.
func headOf(text string, max int) string {
	end := 0
	for range max {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	if line := strings.LastIndexByte(text[:end], '\n'); line >= 0 {
		return text[:line+1]
	}
	return text[:end]
}

// brief returns the head of an error message, which may quote an input of any length.
func brief(text string) string {
	if len(text) <= DefaultMaxChars || utf8.RuneCountInString(text) <= DefaultMaxChars {
		return text
	}
	head := headOf(text, DefaultMaxChars)
	return fmt.Sprintf("%s\n[%d more bytes are not shown]", head, len(text)-len(head))
}
