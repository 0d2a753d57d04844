//go:build windows

// This file makes a build for Windows end with one sentence, before anything is compiled.
package main

import _ "embed"

// There is no such file, and that is the point: its name is what the compiler complains with.
//
//go:embed "toold does not run on Windows, which lacks the Unix process control that it needs - use Linux, or WSL on Windows"
var _ string
