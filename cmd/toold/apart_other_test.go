//go:build !linux

package main

import "testing"

// apart needs what only Linux has.
func apart(t *testing.T, _ []string, _ string, _ ...string) *console {
	t.Helper()
	t.Skip("who has started a process is tried on Linux")
	return nil
}

// apart needs what only Linux has.
func (h *house) apart(t *testing.T, _ string, _ ...string) {
	t.Helper()
	t.Skip("who has started a process is tried on Linux")
}
