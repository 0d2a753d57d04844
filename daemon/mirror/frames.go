// What goes over the socket of a mirror. The daemon sends requests, each behind its length: four bytes, the most significant first.
// It has one under way at a time. The answer is a byte, 0 if all is stored; else the refusal's text follows, again behind its length.
// A byte 2 may come before: the mirror holds back what the daemon sends to clients.

package mirror

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	lengthBytes = 4
	stored      = 0
	refused     = 1
	holds       = 2
	mostRefusal = 64 << 10 // bytes
)

// setLength writes the length of what follows it to the beginning of a frame.
func setLength(frame []byte) error {
	n := len(frame) - lengthBytes
	if n > MaxMessage {
		return fmt.Errorf("a change of the journal has %d bytes, and a mirror takes at most %d", n, MaxMessage)
	}
	binary.BigEndian.PutUint32(frame, uint32(n))
	return nil
}

// readFrame returns what stands behind its length. It takes memory as the bytes come, whatever length is named.
func readFrame(r io.Reader, most int) (data []byte, err error) {
	const step = 1 << 20
	var length [lengthBytes]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n > most {
		return nil, fmt.Errorf("a message of %d bytes, and at most %d are taken", n, most)
	}
	for len(data) < n {
		had := len(data)
		data = slices.Grow(data, min(n-had, step))[:min(n, had+step)]
		if _, err := io.ReadFull(r, data[had:]); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return data, nil
}

// readAnswer returns why the mirror does not store a request, empty if it has stored it. held is called if the mirror
// holds back.
func readAnswer(r io.Reader, held func()) (refusal string, err error) {
	answer := [1]byte{holds}
	for answer[0] == holds {
		if _, err := io.ReadFull(r, answer[:]); err != nil || answer[0] == stored {
			return "", err
		}
		if answer[0] == holds {
			held()
		}
	}
	text, err := readFrame(r, mostRefusal)
	if err == nil && len(text) == 0 {
		text = []byte("it names no reason")
	}
	return string(text), err
}

// ServeConn answers the requests of one connection, one after the other, until it ends. store gets each request, and its bytes, which are
// store's then. If it returns an error the daemon is refused, and ends. store may call held once it lets nothing of the daemon pass to a client
// until it has returned nil, for good if it returns an error. The error is why the connection has ended, io.EOF if the daemon has closed it.
func ServeConn(conn net.Conn, store func(request *tooldv1.AppendChangesRequest, encoded []byte, held func()) error) error {
	for {
		encoded, err := readFrame(conn, MaxMessage)
		if err != nil {
			return err
		}
		request := &tooldv1.AppendChangesRequest{}
		if err = proto.Unmarshal(encoded, request); err == nil {
			err = store(request, encoded, func() {
				if request.GetHolds() {
					_, _ = conn.Write([]byte{holds}) // if it fails the next Write does
				}
			})
		}
		answer := []byte{stored}
		if err != nil {
			text := []byte(err.Error())
			text = text[:min(len(text), mostRefusal)]
			answer = append(append([]byte{refused}, make([]byte, lengthBytes)...), text...)
			if err := setLength(answer[1:]); err != nil {
				return err
			}
		}
		if _, err := conn.Write(answer); err != nil {
			return err
		}
	}
}
