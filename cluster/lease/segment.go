// Segments as bytes: how they are written, and what is checked before they are
// believed.

package lease

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	clusterv1 "github.com/toold/toold/cluster/gen/cluster/v1"
	"github.com/toold/toold/cluster/log"
)

const (
	// format is the version of segments without a creation, withCreation of those with one: what a node that does not know
	// creations does with such a workspace would break what it was created for.
	format       = 1
	withCreation = 2
	withVolume   = 3 // likewise
	// partBytes is how much of payloads a segment takes: what remains is for its
	// other fields, which are names and a few numbers.
	partBytes = log.MaxSegment - 64<<10
	// nameBytes is how long each name may be, and a snapshot's reference.
	nameBytes = 8 << 10
	// inlineBytes is the size from which a payload goes to the object store.
	inlineBytes = partBytes
)

type kind = clusterv1.SegmentKind

const (
	kindOwned    = clusterv1.SegmentKind_SEGMENT_KIND_OWNED
	kindChanges  = clusterv1.SegmentKind_SEGMENT_KIND_CHANGES
	kindBase     = clusterv1.SegmentKind_SEGMENT_KIND_BASE
	kindSnapshot = clusterv1.SegmentKind_SEGMENT_KIND_SNAPSHOT
	kindReleased = clusterv1.SegmentKind_SEGMENT_KIND_RELEASED
)

// header is what a chain needs to know of a segment.
type header struct {
	kind          kind
	epoch         uint64
	payloadsAfter uint64 // how many payloads of CHANGES the log has with this segment
	more          bool   // it counts only with the parts that follow
	begins        bool   // a log may begin with it
}

func headerOf(s *clusterv1.Segment) header {
	h := header{kind: s.GetKind(), epoch: s.GetEpoch(), more: s.GetMore(), payloadsAfter: s.GetFirstPayload()}
	if h.kind == kindChanges {
		h.payloadsAfter += uint64(len(s.GetPayloads()))
	}
	h.begins = h.kind == kindOwned && len(s.GetPrevious()) == 0 || h.kind == kindBase && s.GetPart() == 0
	return h
}

// decode reads a segment. Every error is an [ErrFormat].
func decode(data []byte) (*clusterv1.Segment, error) {
	s := &clusterv1.Segment{}
	if err := proto.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%w: a segment cannot be read", ErrFormat)
	}
	if s.GetFormat() < format || s.GetFormat() > withVolume {
		return nil, fmt.Errorf("%w: a segment has format %d, this node knows %d to %d", ErrFormat, s.GetFormat(), format, withVolume)
	}
	if fault := check(s); fault != "" {
		return nil, fmt.Errorf("%w: a segment has %s", ErrFormat, fault)
	}
	return s, nil
}

// check returns what is wrong with a segment of this format, "" if nothing is.
func check(s *clusterv1.Segment) string {
	switch k := s.GetKind(); {
	case k < kindOwned || k > kindReleased:
		return fmt.Sprintf("the kind %d", k)
	case s.GetEpoch() == 0:
		return "no epoch"
	case s.GetOwner() == "":
		return "no owner"
	case len(s.GetAppendId()) == 0:
		return "no append_id"
	case len(s.GetPrevious()) != 0 && len(s.GetPrevious()) != sha256.Size:
		return "a previous that is not a SHA-256"
	case k != kindChanges && k != kindBase && (len(s.GetPayloads()) > 0 || s.GetPart() > 0 || s.GetMore()):
		return "payloads or parts that its kind does not have"
	case (k == kindOwned || k == kindBase) && (s.GetPrincipal() == "" || s.GetWorkspace() == ""):
		return "no principal or no workspace"
	case k == kindSnapshot && s.GetSnapshot() == nil:
		return "no snapshot"
	case (s.GetCreation() != nil) != (s.GetFormat() >= withCreation), (s.GetCreation().GetVolume() != "") != (s.GetFormat() == withVolume):
		return "a creation that does not belong to its format"
	case s.GetFormat() == withVolume && !isVolume(s.GetCreation().GetVolume()):
		return "a volume's directory that is not an id"
	}
	for _, p := range s.GetPayloads() {
		if b := p.GetBlob(); b != nil && len(b.GetDigest()) != sha256.Size {
			return "a blob whose digest is not a SHA-256"
		} else if p.GetBody() == nil {
			return "an empty payload"
		}
	}
	return ""
}

// writer makes the segments of one owner, in order.
type writer struct {
	w        log.Workspace
	owner    string
	epoch    uint64
	newID    func() []byte
	room     int    // how many bytes of payloads a segment takes
	previous []byte // the hash of the segment before, nil: none
	payloads uint64 // of CHANGES so far
	snapshot *clusterv1.Snapshot
	creation *clusterv1.Creation
}

// next completes a segment and returns its link.
func (w *writer) next(s *clusterv1.Segment) link {
	s.Format, s.Epoch, s.Owner, s.AppendId = format, w.epoch, w.owner, w.newID()
	s.Previous, s.FirstPayload = w.previous, w.payloads
	if s.Kind == kindOwned || s.Kind == kindBase {
		s.Principal, s.Workspace = w.w.Principal, w.w.Name
		if w.creation != nil {
			s.Format, s.Creation = withCreation, w.creation
			if w.creation.GetVolume() != "" {
				s.Format = withVolume
			}
		}
	}
	data, err := proto.Marshal(s)
	if err != nil {
		panic("BUG: a segment cannot be written: " + err.Error()) // names were checked to be UTF-8
	}
	l := newLink(0, data, headerOf(s))
	w.previous, w.payloads = l.hash[:], l.header.payloadsAfter
	return l
}

func (w *writer) owned(diverged bool) []link {
	return []link{w.next(&clusterv1.Segment{Kind: kindOwned, Diverged: diverged})}
}

func (w *writer) release() []link { return []link{w.next(&clusterv1.Segment{Kind: kindReleased})} }

func (w *writer) snapshotted(reference string) []link {
	w.snapshot = &clusterv1.Snapshot{Reference: reference, Payloads: w.payloads}
	return []link{w.next(&clusterv1.Segment{Kind: kindSnapshot, Snapshot: w.snapshot})}
}

func (w *writer) changes(payloads []*clusterv1.Payload) []link {
	return w.divide(kindChanges, payloads, nil)
}

func (w *writer) base(payloads []*clusterv1.Payload) []link {
	return w.divide(kindBase, payloads, w.snapshot)
}

// divide returns segments that are small enough for the log.
func (w *writer) divide(k kind, payloads []*clusterv1.Payload, snapshot *clusterv1.Snapshot) []link {
	var links []link
	for {
		n, size := 0, 0
		for n < len(payloads) {
			if size += proto.Size(payloads[n]) + 8; n > 0 && size > w.room {
				break
			}
			n++
		}
		more := n < len(payloads)
		links = append(links, w.next(&clusterv1.Segment{
			Kind: k, Payloads: payloads[:n], Part: uint32(len(links)), More: more, Snapshot: snapshot,
		}))
		if payloads = payloads[n:]; !more {
			return links
		}
	}
}
