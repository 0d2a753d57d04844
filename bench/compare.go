// One comparison: a control and the same work through toold, turn about, and what may be said of them afterwards. It
// does not know what is compared.
package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// driftLimit is how far the control may move between before and after until the comparison is thrown away.
const driftLimit = 0.15

// A work does something once and says how long one unit of it took.
type work func(ctx context.Context) (time.Duration, error)

type comparison struct {
	name           string
	control, toold work
	// note adds what a duration cannot say, after the last round.
	note func() string
}

// run measures the control alone, then both in turn, then the control alone again.
func (c comparison) run(ctx context.Context, rounds int) (string, error) {
	for _, once := range []work{c.control, c.toold} { // caches are warm for both
		if _, err := once(ctx); err != nil {
			return "", err
		}
	}
	before, err := repeat(ctx, rounds, c.control)
	if err != nil {
		return "", err
	}
	var control, toold, ratios []float64
	for range rounds {
		pair, err := c.pair(ctx)
		if err != nil {
			return "", err
		}
		control, toold = append(control, pair[0]), append(toold, pair[1])
		ratios = append(ratios, pair[1]/pair[0])
	}
	after, err := repeat(ctx, rounds, c.control)
	if err != nil {
		return "", err
	}
	moved := math.Abs(quantile(after, 0.5)/quantile(before, 0.5) - 1)
	return c.row(control, toold, ratios, moved), nil
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

func (c comparison) row(control, toold, ratios []float64, moved float64) string {
	name := c.name
	if c.note != nil {
		name += c.note()
	}
	spread := fmt.Sprintf("%.2f to %.2f", quantile(ratios, 0.1), quantile(ratios, 0.9))
	median := fmt.Sprintf("%.2f x", quantile(ratios, 0.5))
	if moved > driftLimit {
		median, spread = "thrown away", "the control moved too far"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.0f %% |", name, median, spread,
		duration(quantile(control, 0.5)), duration(quantile(toold, 0.5)), moved*100)
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

// quantile gives the value below which the share q of the values lies.
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
