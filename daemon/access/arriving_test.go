package access

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// sent is what a client has sent: the preface of HTTP/2 and frames.
type sent struct {
	bytes.Buffer
	*http2.Framer
}

func newSent() *sent {
	s := &sent{}
	s.WriteString(http2.ClientPreface)
	s.Framer = http2.NewFramer(&s.Buffer, nil)
	return s
}

func (s *sent) open(stream uint32) {
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte{0x82}, EndHeaders: true})
}

// message is a message of so many bytes, of which the first come.
func messageOf(size, come int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(size)), bytes.Repeat([]byte{0xff}, come)...)
}

// TestArrivingCounts: what is unfinished is counted, however the bytes are cut, and with padding.
func TestArrivingCounts(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newSent()
		_ = s.WriteSettings()
		var want int64
		for stream := uint32(1); stream < 40; stream += 2 {
			s.open(stream)
			come := r.IntN(900)
			text := append(bytes.Repeat(messageOf(7, 7), r.IntN(3)), messageOf(1000, come)...)
			for len(text) > 0 {
				n := 1 + r.IntN(len(text))
				if pad := r.IntN(3) * 40; pad > 0 {
					_ = s.WriteDataPadded(stream, false, text[:n], make([]byte, pad))
				} else {
					_ = s.WriteData(stream, false, text[:n])
				}
				text = text[n:]
			}
			switch r.IntN(5) {
			case 0:
				_ = s.WriteRSTStream(stream, http2.ErrCodeCancel)
			case 1:
				_ = s.WriteData(stream, true, nil)
			default:
				want += int64(come)
			}
		}
		_ = s.WritePing(false, [8]byte{})
		a := NewArriving(1<<20, func(why *Overfull) { t.Errorf("ended: %v", why) })
		near, far := net.Pipe()
		conn := a.count(near)
		go func() {
			for text := s.Bytes(); len(text) > 0; {
				n := min(len(text), 1+r.IntN(300))
				_, _ = far.Write(text[:n])
				text = text[n:]
			}
			far.Close()
		}()
		for buffer := make([]byte, 256); ; {
			if _, err := conn.Read(buffer[:1+len(buffer)/2]); err != nil {
				break
			}
		}
		if a.sum != want {
			t.Errorf("seed %d: %d bytes are unfinished, want %d", seed, a.sum, want)
		}
		if conn.Close(); a.sum != 0 || len(a.held) != 0 {
			t.Errorf("seed %d: %d bytes are held after the end", seed, a.sum)
		}
	}
}

// TestArrivingEnds: what the daemon ends counts no more, and a limit ends the connection that holds the most, with a reason.
func TestArrivingEnds(t *testing.T) {
	ended := make(chan *Overfull, 2)
	a := NewArriving(100, func(why *Overfull) { ended <- why })
	type end struct{ conn, client net.Conn }
	open := func(held int) end {
		near, far := net.Pipe()
		e := end{a.count(near), far}
		s := newSent()
		s.open(1)
		_ = s.WriteData(1, false, messageOf(1000, held))
		go func() { _, _ = far.Write(s.Bytes()) }()
		for left := s.Len(); left > 0; {
			n, err := e.conn.Read(make([]byte, left))
			if err != nil {
				t.Fatal(err)
			}
			left -= n
		}
		return e
	}
	first := open(700)
	var trailers bytes.Buffer
	_ = http2.NewFramer(&trailers, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true, EndStream: true})
	go func() { _, _ = io.Copy(io.Discard, first.client) }()
	if _, err := first.conn.Write(trailers.Bytes()); err != nil {
		t.Fatal(err)
	}
	if a.sum != 0 {
		t.Errorf("%d bytes of an ended stream count", a.sum)
	}
	big := open(790)
	told := make(chan http2.Frame, 1)
	go func() {
		frame, _ := http2.NewFramer(nil, big.client).ReadFrame()
		told <- frame
	}()
	defer open(700).conn.Close()
	defer open(200).conn.Close()
	if why := <-ended; why.Scope != "daemon" || why.Limit != 1600 || why.Held != 790 {
		t.Errorf("ended for %+v", why)
	}
	if away, ok := (<-told).(*http2.GoAwayFrame); !ok || !strings.Contains(string(away.DebugData()), "try again in 10 s") {
		t.Errorf("the client was sent %v", away)
	}
	defer open(801).conn.Close()
	if why := <-ended; why.Scope != "connection" || why.Limit != 800 || why.Held != 801 {
		t.Errorf("ended for %+v", why)
	}
}
