// The commands that run something print what is wrong with the settings once, and not again before another daemon has
// started. "toold settings" prints it at any time. The daemon decides which warnings there are.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/cmd/toold/internal/turn"
	"github.com/toold/toold/daemon/settings"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

const (
	// mostSaid bounds what is remembered of warnings; who has more learns the oldest again.
	mostSaid = 500
	// infoPatience is how long a turn that has ended waits to learn which daemon it was.
	infoPatience = 2 * time.Second
)

// A saidFile holds the hashes of warnings that were said while one daemon ran.
type saidFile struct {
	Daemon string   `json:"daemon"`
	Said   []string `json:"said"`
}

// unsaid returns the warnings of a turn that are to be printed: those that were not since the daemon was started, and, where
// a call was denied, what the workspace lacks trust for. What cannot be remembered is said.
func (s *app) unsaid(c *turn.Turn) []*tooldv1.Warning {
	if len(c.Warnings) == 0 {
		return nil
	}
	conn := c.Session.Conn()
	if conn == nil {
		return c.Warnings
	}
	ctx, cancel := context.WithTimeout(context.Background(), infoPatience) // also after an interrupt
	defer cancel()
	info, err := conn.Daemon.GetInfo(ctx, &tooldv1.GetInfoRequest{})
	if err != nil {
		return c.Warnings
	}
	file := filepath.Join(s.daemon.StateDir(), "warned.json")
	before := saidFile{Daemon: fmt.Sprintf("%d %s", info.GetPid(), info.GetStarted().AsTime().Format(time.RFC3339Nano))}
	var kept saidFile
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &kept) == nil && kept.Daemon == before.Daemon {
		before = kept
	}
	now, fresh := before.hear(c.Warnings)
	if len(fresh) > 0 {
		now.write(file)
	}
	denied := c.State.Ended("cannot_ask") || c.State.Ended("mode_denied")
	return slices.DeleteFunc(slices.Clone(c.Warnings), func(w *tooldv1.Warning) bool {
		return !slices.Contains(fresh, w) && !(denied && settings.WarningCode(w.GetCode()) == settings.Untrusted)
	})
}

// hear adds warnings and returns those that are new.
func (f saidFile) hear(warnings []*tooldv1.Warning) (now saidFile, fresh []*tooldv1.Warning) {
	now = saidFile{f.Daemon, slices.Clone(f.Said)}
	for _, w := range warnings {
		sum := sha256.Sum256([]byte(w.GetText()))
		if mark := hex.EncodeToString(sum[:16]); !slices.Contains(now.Said, mark) {
			now.Said, fresh = append(now.Said, mark), append(fresh, w)
		}
	}
	now.Said = now.Said[max(0, len(now.Said)-mostSaid):]
	return now, fresh
}

// write replaces the file. Where that cannot be done the warnings are said again next time.
func (f saidFile) write(file string) {
	next, err := os.CreateTemp(filepath.Dir(file), "warned-*")
	if err != nil {
		return
	}
	if errors.Join(json.NewEncoder(next).Encode(f), next.Close()) != nil || os.Rename(next.Name(), file) != nil {
		_ = os.Remove(next.Name())
	}
}

// concerning returns the warnings that may have to do with the verdict on a call: on trust, on files that are not in force,
// and on rules for its tool. The others are counted.
func concerning(call string, warnings []*tooldv1.Warning) (list []string) {
	tool, _, _ := strings.Cut(call, " ")
	for _, w := range warnings {
		switch code := settings.WarningCode(w.GetCode()); {
		case code == settings.Untrusted, code == settings.NotInForce, w.GetTool() == tool:
			list = append(list, w.GetText())
		}
	}
	if more := len(warnings) - len(list); more > 0 {
		verb := "are"
		if more == 1 {
			verb = "is"
		}
		list = append(list, fmt.Sprintf("There %s %s about something else: \"toold settings\" shows all.", verb, terminal.Count(more, "warning")))
	}
	return list
}
