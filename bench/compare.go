// One comparison: a control and the same work through toold, turn about, and what may be said of
// them afterwards.

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// driftLimit is how far the control may move between before and after until an attempt is thrown away; attempts is how
// often it is tried.
const (
	driftLimit = 0.15
	attempts   = 3
)

// A work does something once and returns how long one unit of it took.
type work func(ctx context.Context) (time.Duration, error)

type comparison struct {
	name           string
	control, toold work
	// note adds what a duration cannot say, after the last round.
	note func() string
}

// run measures and returns a line of the table.
func (c comparison) run(ctx context.Context, rounds int) (string, error) {
	s, err := c.settled(ctx, rounds)
	if err != nil {
		return "", err
	}
	return c.row(s), nil
}

// settled measures until the control has held still, attempts times at most.
func (c comparison) settled(ctx context.Context, rounds int) (s samples, err error) {
	for _, once := range []work{c.control, c.toold} { // caches are warm for both
		if _, err := once(ctx); err != nil {
			return s, err
		}
	}
	for range attempts {
		if s, err = c.sample(ctx, rounds); err != nil || s.moved <= driftLimit {
			break
		}
	}
	return s, err
}

// samples are what the rounds of one attempt gave, in seconds.
type samples struct {
	control, toold, ratios []float64
	moved                  float64 // the control, between before and after, as a share
}

// sample measures only the control, then both in turn, then only the control again.
func (c comparison) sample(ctx context.Context, rounds int) (s samples, err error) {
	before, err := repeat(ctx, rounds, c.control)
	if err != nil {
		return s, err
	}
	for range rounds {
		pair, err := c.pair(ctx)
		if err != nil {
			return s, err
		}
		s.control, s.toold = append(s.control, pair[0]), append(s.toold, pair[1])
		s.ratios = append(s.ratios, pair[1]/pair[0])
	}
	after, err := repeat(ctx, rounds, c.control)
	if err != nil {
		return s, err
	}
	s.moved = math.Abs(quantile(after, 0.5)/quantile(before, 0.5) - 1)
	return s, nil
}

// pair measures both once, in seconds.
func (c comparison) pair(ctx context.Context) (pair [2]float64, err error) {
	for i, once := range []work{c.control, c.toold} {
		took, err := once(ctx)
		if err != nil {
			return pair, err
		}
		pair[i] = took.Seconds()
	}
	return pair, nil
}

func (c comparison) row(s samples) string {
	name := c.name
	if c.note != nil {
		name += c.note()
	}
	spread := fmt.Sprintf("%.2f to %.2f", quantile(s.ratios, 0.1), quantile(s.ratios, 0.9))
	median := fmt.Sprintf("%.2f x", quantile(s.ratios, 0.5))
	if s.moved > driftLimit {
		median, spread = "thrown away", "the control moved too far"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.0f %% |", name, median, spread,
		duration(quantile(s.control, 0.5)), duration(quantile(s.toold, 0.5)), s.moved*100)
}

func repeat(ctx context.Context, times int, once work) ([]float64, error) {
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

// quantile returns the value below which the share q of the values lies.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}

func duration(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.1f us", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.2f ms", seconds*1e3)
	default:
		return fmt.Sprintf("%.2f s", seconds)
	}
}
