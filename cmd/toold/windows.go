//go:build windows

// This file makes a build for Windows end with one sentence, before anything is compiled.
package main

import _ "embed"

// The file does not exist, on purpose: its name is the compiler's error message.
//
//go:embed "toold does not run on Windows, which lacks the Unix process control that it needs - use Linux, or WSL on Windows"
var _ string
