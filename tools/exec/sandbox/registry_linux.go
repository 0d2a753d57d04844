package sandbox

import "io"

// A registry holds what several instances share, by what it was made for.
type registry[T interface {
	comparable
	io.Closer
}] map[string]*shared[T]

type shared[T any] struct {
	value T
	users int
}

// enter counts one more user of the value for key, which it makes if there is none.
func (r registry[T]) enter(key string, newValue func() (T, error)) (value T, err error) {
	s := r[key]
	if s == nil {
		if value, err = newValue(); err != nil {
			return value, err
		}
		s = &shared[T]{value: value}
		r[key] = s
	}
	s.users++
	return s.value, nil
}

// leave counts one user less, and closes the value with the last one. A value that is not in the
// registry, such as nil, is left alone.
func (r registry[T]) leave(value T) {
	for key, s := range r {
		if s.value != value {
			continue
		}
		if s.users--; s.users == 0 {
			delete(r, key)
			_ = value.Close()
		}
	}
}
