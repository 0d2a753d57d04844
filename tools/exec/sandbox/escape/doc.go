// Package escape is the suite that tries every door of a sandbox. It lays a scene (files, processes and sockets that must
// not be reached), has a probe started in the sandbox by its caller, and joins what the probe says with what is seen
// from outside. It does not know how the sandbox is made, and imports nothing of it.
//
// All of it is in its tests. The probe is the program in the directory probe; package scene is what the two share.
package escape
