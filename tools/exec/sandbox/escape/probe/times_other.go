//go:build linux && !amd64

package main

import "github.com/toold/toold/tools/exec/sandbox/escape/scene"

func oldTimes(func(string, func(*scene.Scene) error) door) []door { return nil }
