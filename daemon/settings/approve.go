package settings

import (
	"errors"
	"path/filepath"
)

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
	return s.exclusively(func() error {
		return s.rewrite(func(b *book) {
			if b.Servers == nil {
				b.Servers = map[string]map[string]string{}
			}
			if b.Servers[real] == nil {
				b.Servers[real] = map[string]string{}
			}
			b.Servers[real][name] = digest
		})
	})
}

// forget removes the trust in the workspace at an absolute path, and the approvals of its servers.
func (b *book) forget(absolute string) {
	for _, root := range []string{absolute, realOr(absolute)} {
		delete(b.Roots, root)
		delete(b.Servers, root)
	}
}

func realOr(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
