//go:build linux && !amd64

package main

func foreign() []door { return nil }
