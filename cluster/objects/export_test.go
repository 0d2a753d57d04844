package objects

// InParts returns a store whose objects are in parts of so many bytes.
func (s S3) InParts(bytes int64) S3 {
	s.part = bytes
	return s
}
