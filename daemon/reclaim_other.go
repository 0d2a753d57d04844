//go:build !linux

package daemon

// dropProgram does nothing: only Linux shows which pages of a program are unchanged.
func dropProgram() {}
