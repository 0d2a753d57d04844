// Package ratio compares a control with the same work through toold: in turns, with the control measured once more before
// and after. It does not know what either of them is.
package ratio

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// DriftLimit is how far the control may move between before and after until an attempt is thrown away; attempts is how
// often it is tried.
const (
	DriftLimit = 0.15
	attempts   = 3
)

// A Work does something once and returns how long one unit of it took.
type Work func(ctx context.Context) (time.Duration, error)

// A Comparison is one line of a table.
type Comparison struct {
	Name           string
	Control, Toold Work
	// Note adds what a duration cannot say, after the last round.
	Note func() string
}

// Run measures and returns a line of the table.
func (c Comparison) Run(ctx context.Context, rounds int) (string, error) {
	s, err := c.Settled(ctx, rounds)
	if err != nil {
		return "", err
	}
	return c.row(s), nil
}

// Settled measures until the control has held still, attempts times at most.
func (c Comparison) Settled(ctx context.Context, rounds int) (s Samples, err error) {
	for _, once := range []Work{c.Control, c.Toold} { // caches are warm for both
		if _, err := once(ctx); err != nil {
			return s, err
		}
	}
	for range attempts {
		if s, err = c.sample(ctx, rounds); err != nil || s.Moved <= DriftLimit {
			break
		}
	}
	return s, err
}

// Samples are what the rounds of one attempt gave, in seconds.
type Samples struct {
	Control, Toold, Ratios []float64
	Moved                  float64 // the control, between before and after, as a share
}

// sample measures only the control, then both in turn, then only the control again.
func (c Comparison) sample(ctx context.Context, rounds int) (s Samples, err error) {
	before, err := repeat(ctx, rounds, c.Control)
	if err != nil {
		return s, err
	}
	for range rounds {
		pair, err := c.pair(ctx)
		if err != nil {
			return s, err
		}
		s.Control, s.Toold = append(s.Control, pair[0]), append(s.Toold, pair[1])
		s.Ratios = append(s.Ratios, pair[1]/pair[0])
	}
	after, err := repeat(ctx, rounds, c.Control)
	if err != nil {
		return s, err
	}
	s.Moved = math.Abs(Quantile(after, 0.5)/Quantile(before, 0.5) - 1)
	return s, nil
}

// pair measures both once, in seconds.
func (c Comparison) pair(ctx context.Context) (pair [2]float64, err error) {
	for i, once := range []Work{c.Control, c.Toold} {
		took, err := once(ctx)
		if err != nil {
			return pair, err
		}
		pair[i] = took.Seconds()
	}
	return pair, nil
}

func (c Comparison) row(s Samples) string {
	name := c.Name
	if c.Note != nil {
		name += c.Note()
	}
	spread := fmt.Sprintf("%.2f to %.2f", Quantile(s.Ratios, 0.1), Quantile(s.Ratios, 0.9))
	median := fmt.Sprintf("%.2f x", Quantile(s.Ratios, 0.5))
	if s.Moved > DriftLimit {
		median, spread = "thrown away", "the control moved too far"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.0f %% |", name, median, spread,
		Duration(Quantile(s.Control, 0.5)), Duration(Quantile(s.Toold, 0.5)), s.Moved*100)
}

func repeat(ctx context.Context, times int, once Work) ([]float64, error) {
	var seconds []float64
	for range times {
		took, err := once(ctx)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, took.Seconds())
	}
	return seconds, nil
}

// Quantile returns the value below which the share q of the values lies.
func Quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}

// Duration returns seconds in the unit that suits them.
func Duration(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.1f us", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.2f ms", seconds*1e3)
	default:
		return fmt.Sprintf("%.2f s", seconds)
	}
}
