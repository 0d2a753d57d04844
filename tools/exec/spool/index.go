// The index maps bytes of the raw file to channels.
//
// The raw file begins with Stdout. Each record starts a run that lasts to the next record, or to
// the end of the raw file. So an output without a byte on Stderr has no index at all, and one whose
// daemon has died needs no repair. Records have a fixed size and hold both positions, so any
// position is found by bisection.

package spool

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"sort"
)

// recordSize is the size of one record in bytes: start and channel in one word, then the offset in
// the channel.
const recordSize = 16

// A run is a range of bytes of one channel: where it starts in the raw file and in the channel.
type run struct {
	channel       Channel
	start, offset int64
}

func (r run) encode() (buf [recordSize]byte) {
	binary.LittleEndian.PutUint64(buf[:8], uint64(r.start)<<1|uint64(r.channel))
	binary.LittleEndian.PutUint64(buf[8:], uint64(r.offset))
	return buf
}

func decodeRun(buf []byte) run {
	first := binary.LittleEndian.Uint64(buf[:8])
	return run{channel: Channel(first & 1), start: int64(first >> 1), offset: int64(binary.LittleEndian.Uint64(buf[8:]))}
}

// position returns how many bytes of ch came before the run.
func (r run) position(ch Channel) int64 {
	if r.channel == ch {
		return r.offset
	}
	return r.start - r.offset
}

// channelSizes are the bytes of each channel.
type channelSizes [channels]int64

func (s channelSizes) total() int64 { return s[Stdout] + s[Stderr] }

// at returns the i-th run and its end in the raw file; run -1 is the Stdout before the first
// record.
func (s *snapshot) at(i int64) (r run, end int64) {
	end = s.sizes.total()
	if i >= 0 {
		r = s.record(i)
	}
	if i+1 < s.count {
		end = s.record(i + 1).start
	}
	return r, end
}

func (s *snapshot) record(i int64) run {
	var buf [recordSize]byte
	if _, err := s.idx.ReadAt(buf[:], i*recordSize); err != nil {
		s.fault = err
	}
	return decodeRun(buf[:])
}

// last returns the number of the last run for which before is true; before must be true for a
// prefix of the runs.
func (s *snapshot) last(before func(run) bool) int64 {
	return int64(sort.Search(int(s.count), func(i int) bool { return !before(s.record(int64(i))) })) - 1
}

// recoverOutput reads an output from its files.
func recoverOutput(base string) (*Output, error) {
	raw, err := os.Stat(base + rawSuffix)
	if err != nil {
		return nil, err
	}
	o := &Output{base: base, ended: true, lines: -1}
	o.sizes[Stdout] = raw.Size()
	f, err := os.Open(base + indexSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o.runs, o.sizes, err = verify(f, raw.Size())
	return o, err
}

// verify counts the records that are complete and consistent, and the bytes of each channel. A
// record that contradicts those before it ends the index: the bytes after it belong to the last
// valid run.
func verify(records io.Reader, total int64) (count int64, sizes channelSizes, err error) {
	var buf [512 * recordSize]byte
	last := run{}
	for {
		n, err := io.ReadFull(records, buf[:])
		for at := 0; at+recordSize <= n; at += recordSize {
			next := decodeRun(buf[at:])
			if !follows(last, next, count == 0) || next.start > total {
				return count, sizesAt(last, total), nil
			}
			last, count = next, count+1
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return count, sizesAt(last, total), nil
		case err != nil:
			return 0, sizes, err
		}
	}
}

// follows reports whether next can come after last: it changes the channel, leaves no empty run
// before it, and agrees with last on the bytes before it. Only the first record may start at 0.
func follows(last, next run, first bool) bool {
	grows := next.start > last.start || first && next.start == 0
	return grows && next.channel != last.channel && next.offset == last.position(next.channel)
}

// sizesAt returns the size of each channel if r lasts to total.
func sizesAt(r run, total int64) (sizes channelSizes) {
	sizes[r.channel] = r.offset + total - r.start
	sizes[1-r.channel] = r.start - r.offset
	return sizes
}
