// Files that are needed as a whole in memory.

package read

import (
	"bytes"
	"context"
	"io"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/workspace"
	"github.com/toold/toold/tools/fs/workspace/text"
)

// maxWhole is the largest file, in bytes, that is read as a whole; changes have the same limit.
const maxWhole = 64 << 20

// checkSize rejects a file that is too large to be read as a whole.
func (s *source) checkSize() error {
	if size := s.file.Info.Size(); size > maxWhole {
		return fault.Invalidf("file_too_large", "%s (%s) has %s; only text files may be larger than %d MiB. Use Bash with a program for its format.", s.file.Path.Shown(), s.media, text.Count(size, "byte"), maxWhole>>20).
			At("/file_path").With(Binary{MediaType: s.media, Size: size})
	}
	return nil
}

// whole returns the content of the file, which is hashed on the way.
func (s *source) whole(ctx context.Context) ([]byte, error) {
	if err := s.checkSize(); err != nil {
		return nil, err
	}
	from := io.LimitReader(&tap{s: s, from: io.MultiReader(bytes.NewReader(s.sample), s.rest)}, maxWhole+1)
	data := make([]byte, 0, s.file.Info.Size()+1) // one more, so that the end is reached without growing
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := from.Read(data[len(data):min(cap(data), len(data)+1<<20)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF:
			s.ended = true
			return data, nil
		case err != nil:
			return nil, s.broken(err)
		}
	}
}

// rewind makes the file be read again from its beginning, from the content that whole has returned.
func (s *source) rewind(data []byte) {
	s.sample, s.rest = data, bytes.NewReader(nil)
	s.hash, s.bytes, s.kept, s.ended = workspace.NewHasher(), 0, nil, false
}

// rememberWhole records what the call has seen of a file that was read to its end: all of it, or
// part of it.
func (s *source) rememberWhole(env *tools.Env, all bool) {
	if s.file.Kernel {
		return
	}
	state := workspace.StateOf(s.file.Info)
	if s.bytes == state.Size {
		state.Hash, state.Whole = s.hash.Sum(), all
		if len(s.kept) == int(state.Size) {
			state.Text = s.kept
		}
	}
	env.Files.Record(s.file.Path.Real, state)
}
