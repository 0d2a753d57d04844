// Package guard holds values that several goroutines change. It does not know what they are.
package guard

import "sync"

// A Value can only be reached through Do. A function with a pointer to its content therefore has
// the lock, unless the pointer was kept. The zero Value holds the zero T.
type Value[T any] struct {
	mu    sync.Mutex
	value T
}

// Do runs f with the value, one caller at a time. f must not call Do of the same Value, nor keep
// the pointer.
func (v *Value[T]) Do(f func(*T)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f(&v.value)
}
