package node

import "context"

// TidyNow removes the directories that are not needed any more.
func (n *Node) TidyNow(ctx context.Context) { n.tidy(ctx) }
