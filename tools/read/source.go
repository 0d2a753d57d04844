// A file on its way through the reader: what it is, its bytes, its hash. What is shown of it is in page.go.

package read

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/text/transform"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/picture"
	"github.com/toold/toold/tools/workspace"
	"github.com/toold/toold/tools/workspace/text"
)

const (
	// toTheEnd is the largest file, in bytes, that is read to its end for its hash and its number of lines.
	toTheEnd = 8 << 20
	// kernelLimit is how much of a file that the kernel makes up is read; who gives more may never end.
	kernelLimit = 1 << 20
	// kernelWait is how long such a file may take to give anything.
	kernelWait = time.Second
	chunk      = text.Sample
)

// A kind is how a file is shown.
type kind uint8

const (
	textual kind = iota
	image
	document
	book // a Jupyter notebook
)

// A source is an opened file on its way through the reader.
type source struct {
	file     *workspace.File
	kind     kind
	media    string    // media type
	sample   []byte    // the beginning of the file
	rest     io.Reader // what follows sample
	encoding text.Encoding
	hash     *workspace.Hasher
	bytes    int64  // raw bytes that have been read
	kept     []byte // all of them, as long as they are few enough to be kept
	ended    bool   // the end of the file was reached
	lent     []*[chunk]byte
}

// buffers are used again from call to call: clearing fresh ones would cost a quarter of a small read.
var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// buffer lends a buffer until close.
func (s *source) buffer() []byte {
	b := buffers.Get().(*[chunk]byte)
	s.lent = append(s.lent, b)
	return b[:]
}

// close frees everything. Nothing of the source may be used afterwards.
func (s *source) close() error {
	for _, b := range s.lent {
		buffers.Put(b)
	}
	s.lent = nil
	return s.file.Close()
}

// open opens the file, looks at its beginning and refuses what is not shown.
func open(env *tools.Env, in input) (*source, error) {
	if err := env.Files.Absolute(in.FilePath); err != nil {
		return nil, workspace.Blame(err, "/file_path")
	}
	file, err := env.Files.Open(in.FilePath)
	if err != nil {
		return nil, workspace.Blame(err, "/file_path")
	}
	s := &source{file: file, rest: file, hash: workspace.NewHasher()}
	if err := s.begin(in); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *source) begin(in input) error {
	if s.file.Kernel {
		if err := s.readKernel(); err != nil {
			return err
		}
	} else {
		b := s.buffer()
		n, err := io.ReadFull(s.file, b)
		if s.sample = b[:n]; err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return s.broken(err)
		}
	}
	encoding, isText := text.Detect(s.sample)
	s.encoding = encoding
	return s.classify(in, isText)
}

// readKernel takes the whole of a file that the kernel makes up, within its limits.
func (s *source) readKernel() error {
	endless := fault.Invalidf("not_regular", "%s is made up by the kernel while it is read, and it is longer than %d MiB, or waits for something to happen. Use Bash with head or timeout.", s.file.Path.Shown(), kernelLimit>>20).At("/file_path")
	_ = s.file.SetReadDeadline(time.Now().Add(kernelWait)) // refused by files that never wait
	all := make([]byte, kernelLimit+chunk)                 // some of these files give whole blocks only
	n, err := io.ReadFull(s.file, all)
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EAGAIN):
		return endless
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		return s.broken(err)
	}
	s.sample, s.rest = all[:n], bytes.NewReader(nil)
	return nil
}

// Binary are the Details of what says that a file cannot be shown: binary_file, damaged_file, encrypted_file,
// file_too_large, unsupported_media.
type Binary struct {
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"` // bytes
}

// classify returns how the file is shown, or why it is not.
func (s *source) classify(in input, isText bool) error {
	name, size := s.file.Path.Shown(), s.file.Info.Size()
	s.media = text.MediaType(s.sample)
	switch {
	case s.media == "application/pdf":
		s.kind = document
	case picture.Shown(s.media) && !isText: // else it is text that happens to begin like an image
		s.kind = image
	case isText && strings.EqualFold(filepath.Ext(name), ".ipynb"):
		s.kind, s.media = book, "application/x-ipynb+json"
	case !isText:
		return fault.Invalidf("binary_file", "%s is not text: %s, %s. Use Bash with file, strings or xxd to look into it.", name, s.media, text.Count(size, "byte")).
			At("/file_path").With(Binary{MediaType: s.media, Size: size})
	}
	switch {
	case in.Pages != "" && s.kind != document:
		return fault.Invalidf("invalid_input", "pages is for PDF documents, and %s is none. Leave it out; use offset and limit.", name).At("/pages")
	case in.Offset > 1 && s.kind == document:
		return fault.Invalidf("invalid_input", "offset is for text and notebooks, and %s is a PDF document. Use pages.", name).At("/offset")
	case in.Offset > 1 && s.kind == image:
		return fault.Invalidf("invalid_input", "offset is for text and notebooks, and %s is an image. Leave it out.", name).At("/offset")
	}
	return nil
}

func (s *source) broken(err error) error {
	return fault.Failedf("io_error", "%s could not be read: %v.", s.file.Path.Shown(), err)
}

// read returns the page what the file holds, until the page is full. A file that is not too large is then read to its
// end, for its hash.
func (s *source) read(ctx context.Context, p *page) error {
	var from io.Reader = &tap{s: s, from: io.MultiReader(bytes.NewReader(s.sample), s.rest)}
	if d := s.encoding.Decoder(); d != nil {
		from = transform.NewReader(from, d)
	}
	buf := s.buffer()
	p.out.Grow(int(min(s.file.Info.Size()*5/4+closing, int64(p.chars+closing))))
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := from.Read(buf)
		p.take(buf[:n])
		switch {
		case err == io.EOF:
			p.end()
			s.ended = true
			return nil
		case err != nil:
			return s.broken(err)
		case p.full && s.file.Info.Size() > toTheEnd:
			return nil
		}
	}
}

// A tap is the source's raw bytes; what flows through it is counted, hashed and, if there is little of it, kept.
type tap struct {
	s    *source
	from io.Reader
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.from.Read(b)
	s := t.s
	s.hash.Add(b[:n])
	s.bytes += int64(n)
	if s.file.Info.Size() <= workspace.KeptFile && len(s.kept)+n <= workspace.KeptFile {
		s.kept = append(s.kept, b[:n]...)
	}
	return n, err
}

// remember records what the call has seen. What changed while it was read is recorded as it was at the opening, so that
// it counts as changed.
func (s *source) remember(env *tools.Env, p *page) {
	if s.file.Kernel {
		return
	}
	state := workspace.StateOf(s.file.Info)
	if p.given > 0 {
		state.Seen = []workspace.Range{{First: p.first, Last: p.last()}}
	}
	if s.ended && s.bytes == state.Size {
		state.Hash, state.Lines = s.hash.Sum(), p.line
		state.Whole = p.given == p.line
		if len(s.kept) == int(state.Size) {
			state.Text = s.kept
		}
	}
	env.Files.Record(s.file.Path.Real, state)
}
