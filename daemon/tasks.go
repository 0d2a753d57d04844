package daemon

// Background tasks, as far as the session and its clients hear of them.

import (
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools/background"
	"github.com/toold/toold/tools/spool"
)

func (s *session) taskEnded(*background.Task)               {}
func (s *session) runningTasks() int                        { return 0 }
func (s *session) describeTasks() []*tooldv1.BackgroundTask { return nil }
func (s *session) taskOutput(key string) *spool.Output      { return nil }
