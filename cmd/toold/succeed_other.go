//go:build !linux

package main

import (
	"context"
	"errors"

	"github.com/toold/toold/daemon"
)

// takeOverVariable is set by no program here.
const takeOverVariable = "TOOLD_TAKE_OVER"

// A successor is the program that is installed at a path. Here none can take over.
type successor struct {
	ask func(context.Context) (string, error)
}

func newSuccessor([]string) (*successor, error) { return &successor{}, nil }

func (s *successor) begin(*daemon.Handover) error { return errors.ErrUnsupported }

func takeOver() (*daemon.Handover, error) { return nil, nil }

// A takeOverAnswer is what a program prints that can take over.
type takeOverAnswer struct {
	TakesOver int    `json:"takes_over"`
	Version   string `json:"version"`
}
