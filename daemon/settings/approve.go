package settings

import "errors"

// ApproveServer remembers that a server may be started in the workspace at root, as long as its entry has that digest. The name
// is the one under which the approval is kept; see MCPServer.Approval and MCPServer.Digest. Another entry of the name is another server
// and is not approved. It does not make the workspace trusted.
func (s *Store) ApproveServer(root, name, digest string) error {
	if name == "" || digest == "" {
		return errors.New("a server is approved by its name and the digest of its entry")
	}
	real, err := realRoot(root)
	if err != nil {
		return err
	}
	return s.change(func(b *book) {
		if b.Servers[real] == nil {
			b.Servers[real] = map[string]string{}
		}
		b.Servers[real][name] = digest
	})
}
