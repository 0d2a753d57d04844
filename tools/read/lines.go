// A text file as lines: the text for a model, and the data for programs.

package read

import (
	"context"
	"fmt"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// lines returns the requested lines.
func (s *source) lines(ctx context.Context, env *tools.Env, in input) (tools.Result, error) {
	p := page{first: in.Offset, lines: in.Limit, chars: room(env)}
	p.width = min(maxLine, p.chars)
	if err := s.read(ctx, &p); err != nil {
		return tools.Result{}, err
	}
	seen := workspace.State{Lines: p.line, Whole: p.given == p.line}
	if p.given > 0 {
		seen.Seen = []workspace.Range{{First: p.first, Last: p.last()}}
	}
	s.remember(env, seen)
	return tools.TextWith(p.text(in), s.structured(&p)), nil
}

func (s *source) structured(p *page) Structured {
	out := Structured{
		FilePath: s.file.Path.Name(), Size: s.file.Info.Size(), Encoding: s.encoding.Name(), BOM: s.encoding.BOM() != nil,
		LineEnding: string(text.EndingOf(p.breaks, p.crlf)), Language: language(s.file.Path.Named), Replaced: p.replaced,
	}
	if s.file.Kernel {
		out.Size = s.bytes
	}
	if s.ended {
		out.TotalLines = &p.line
	}
	if p.given > 0 {
		out.FirstLine, out.LastLine = p.first, p.last()
	}
	if p.more {
		out.NextOffset = p.first + p.given
	}
	return out
}

func (p *page) text(in input) string {
	switch {
	case p.given == 0 && p.line == 0:
		return "The file is empty."
	case p.given == 0:
		return fmt.Sprintf("The file has %s; line %d is past its end.", text.Count(p.line, "line"), in.Offset)
	case p.more && p.ended:
		fmt.Fprintf(&p.out, "(%s shown; continue with offset=%d)", p.which(fmt.Sprintf(" of %d", p.line)), p.last()+1)
	case p.more:
		fmt.Fprintf(&p.out, "(%s shown; the file is longer, and too large to count its lines; continue with offset=%d)", p.which(""), p.last()+1)
	}
	return p.out.String()
}

// which returns which lines are shown, with of after their numbers, as the beginning of a sentence.
func (p *page) which(of string) string {
	if p.given == 1 {
		return fmt.Sprintf("line %d%s is", p.first, of)
	}
	return fmt.Sprintf("lines %d to %d%s are", p.first, p.last(), of)
}
