//go:build !linux

package rawio

// Read reads the file.
func (s *Stream) Read(p []byte) (int, error) { return s.file.Read(p) }

// Write writes to the file.
func (s *Stream) Write(p []byte) (int, error) { return s.file.Write(p) }
