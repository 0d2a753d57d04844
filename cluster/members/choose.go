// Which node is to have a workspace that no node owns.

package members

import (
	"math"

	"github.com/cespare/xxhash/v2"
)

// loadBound is how many times the average of workspaces a node may have before it
// is passed over. It is the c of "Consistent Hashing with Bounded Loads" (2017):
// nearer to 1 the loads are more equal, and more workspaces go to another node
// than their first.
const loadBound = 1.25

// Choose returns the node to ask for a workspace whose owner is not known: of the
// live nodes that are not to be drained, all programs choose the same one, as long
// as they see the same nodes. A node with more than its share of workspaces is
// passed over. except names nodes that were tried. It reports false if no node is
// left.
func (m *Members) Choose(principal, workspace string, except map[string]bool) (Node, bool) {
	var fit []Node
	total := 0
	for _, node := range m.Live() {
		if !node.Draining && node.Address != "" && !except[node.Name] {
			fit, total = append(fit, node), total+node.Load.Workspaces
		}
	}
	if len(fit) == 0 {
		return Node{}, false
	}
	most := int(math.Ceil(loadBound * float64(total+1) / float64(len(fit))))
	best, highest := Node{}, uint64(0)
	for _, node := range fit { // one of them has at most the average, so one is found
		if score := scoreOf(node.Name, principal, workspace); node.Load.Workspaces < most && (best.Name == "" || score > highest) {
			best, highest = node, score
		}
	}
	return best, true
}

// scoreOf is how well a node fits a workspace.
func scoreOf(parts ...string) uint64 {
	d := xxhash.New()
	for _, part := range parts {
		_, _ = d.WriteString(part)
		_, _ = d.Write([]byte{0xff}) // in no UTF-8
	}
	return d.Sum64()
}
