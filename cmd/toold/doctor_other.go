//go:build !linux

package main

func (d *doctor) checkFileSystem(string, string) {}
func (d *doctor) checkMachine()                  {}
func namespaceAdvice() string                    { return "" }
