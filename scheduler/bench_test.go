// What ordering costs: a call through a Plan with many others waiting, and calls
// that do nothing through a Scheduler. Both should stay flat as work grows.

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

func BenchmarkPlan(b *testing.B) {
	for _, waiting := range []int{0, 100, 10_000} {
		for _, kind := range []string{"Read", "Edit"} {
			b.Run(fmt.Sprintf("%s/waiting=%d", kind, waiting), func(b *testing.B) { benchmarkPlan(b, kind, waiting) })
		}
	}
}

// benchmarkPlan adds a call, ends the oldest and starts what follows it.
func benchmarkPlan(b *testing.B, kind string, waiting int) {
	p := NewPlan(Streaming, 1)
	tasks := make([]Task, waiting+2)
	for i := range tasks {
		tasks[i] = name{id: fmt.Sprint(kind, i), turn: 1}
	}
	for _, t := range tasks[:waiting+1] {
		p.Add(t, "")
	}
	p.Start(1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.Add(tasks[(i+waiting+1)%len(tasks)], "")
		p.Finish(tasks[i%len(tasks)].ID(), nil)
		if !p.Start(1) {
			b.Fatal("nothing started")
		}
		for range p.Steps {
		}
	}
}

func BenchmarkAbortOfAThousand(b *testing.B) {
	tasks := make([]Task, 1000)
	for i := range tasks {
		tasks[i] = name{id: fmt.Sprint("Read", i), turn: 1}
	}
	aborted := errors.New("aborted")
	b.ReportAllocs()
	for b.Loop() {
		p := NewPlan(Streaming, DefaultConcurrency)
		for _, t := range tasks {
			p.Add(t, "")
		}
		p.Start(1)
		p.Finish(tasks[0].ID(), aborted)
	}
}

func BenchmarkScheduler(b *testing.B) {
	for _, sessions := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) { benchmarkScheduler(b, sessions) })
	}
}

// benchmarkScheduler runs calls that do nothing, 64 of them in flight.
func benchmarkScheduler(b *testing.B, sessions int) {
	s := New(16)
	defer s.Close()
	queues := make([]*Queue, sessions)
	for i := range queues {
		queues[i] = s.NewQueue(Streaming, DefaultConcurrency)
	}
	flight := make(chan struct{}, 64)
	var all sync.WaitGroup
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		flight <- struct{}{}
		all.Add(1)
		queues[i%sessions].Add(scripted{id: fmt.Sprint(i), run: func(context.Context, func(func()) error) error {
			<-flight
			all.Done()
			return nil
		}}, "")
	}
	all.Wait()
}
