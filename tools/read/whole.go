// Files that are needed as a whole in memory.

package read

import (
	"bytes"
	"context"
	"io"

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
	data := bytes.NewBuffer(make([]byte, 0, s.file.Info.Size()+bytes.MinRead)) // so much that the end is reached without growing
	_, err := data.ReadFrom(io.LimitReader(workspace.Patient(ctx, &tap{s: s, from: io.MultiReader(bytes.NewReader(s.sample), s.rest)}), maxWhole+1))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, s.broken(err)
	}
	s.ended = true
	return data.Bytes(), nil
}

// rewind makes the file be read again from its beginning, from the content that whole has returned.
func (s *source) rewind(data []byte) {
	s.sample, s.rest = data, bytes.NewReader(nil)
	s.hash, s.bytes, s.kept, s.ended = workspace.NewHasher(), 0, nil, false
}
