// A cache of a tool's results. It is for tools whose author has declared them read-only, and only
// where the user has turned it on. The cache cannot see what the tool looks at, so a result may be
// out of date before its time is over.

package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"
)

// Limits of the cache of one tool: about what the model asks for in a turn or two.
const (
	maxKept      = 64
	maxKeptBytes = 4 << 20
)

// Cached returns tool with a cache in front of it. A result is kept for ttl, by input and working
// directory, from the moment it was returned. Results of calls that change something here, and
// failed results, are not kept. The cache belongs to one session and must not be shared with
// another.
func Cached(tool Tool, ttl time.Duration) Tool {
	return &cached{Tool: tool, ttl: ttl, kept: map[[sha256.Size]byte]kept{}}
}

type cached struct {
	Tool
	ttl time.Duration

	mu    sync.Mutex
	kept  map[[sha256.Size]byte]kept
	order [][sha256.Size]byte // oldest first
	bytes int
}

type kept struct {
	result Result
	until  time.Time
	bytes  int
}

func (c *cached) Parse(input json.RawMessage) (Action, error) {
	action, err := c.Tool.Parse(input)
	if err != nil || !action.Effects().Concurrent() {
		return action, err
	}
	return &cachedAction{Action: action, of: c, input: sorted(input)}, nil
}

// sorted writes an input with its keys sorted, so that equal inputs have equal bytes.
func sorted(input json.RawMessage) []byte {
	tokens := json.NewDecoder(bytes.NewReader(input))
	tokens.UseNumber()
	var value any
	if err := tokens.Decode(&value); err != nil {
		return input
	}
	text, err := json.Marshal(value)
	if err != nil {
		return input
	}
	return text
}

type cachedAction struct {
	Action
	of    *cached
	input []byte
}

func (a *cachedAction) Run(ctx context.Context, env *Env) (Result, error) {
	key := a.key(env)
	if result, found := a.of.take(key, time.Now()); found {
		return result, nil
	}
	result, err := a.Action.Run(ctx, env)
	if err == nil && result.Spill == nil {
		a.of.keep(key, result, time.Now())
	}
	return result, err
}

// key identifies what a result depends on: the directory, which holds no NUL byte, and the input.
func (a *cachedAction) key(env *Env) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(env.Dir+"\x00"), a.input...))
}

func (c *cached) take(key [sha256.Size]byte, now time.Time) (Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, found := c.kept[key]
	if !found || !now.Before(k.until) {
		return Result{}, false
	}
	return Result{Content: k.result.Content, Structured: k.result.Structured}, true
}

func (c *cached) keep(key [sha256.Size]byte, result Result, now time.Time) {
	k := kept{result: result, until: now.Add(c.ttl), bytes: weight(result)}
	if k.bytes > maxKeptBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, again := c.kept[key]; again {
		c.bytes -= old.bytes
	} else {
		c.order = append(c.order, key)
	}
	c.kept[key], c.bytes = k, c.bytes+k.bytes
	for len(c.order) > maxKept || c.bytes > maxKeptBytes {
		c.bytes -= c.kept[c.order[0]].bytes
		delete(c.kept, c.order[0])
		c.order = c.order[1:]
	}
}

// weight estimates the memory of a result, in bytes.
func weight(result Result) int {
	total := 0
	for _, block := range result.Content {
		total += len(block.Text)
		for _, blob := range []*Blob{block.Image, block.Document} {
			if blob != nil {
				total += len(blob.Data)
			}
		}
	}
	if text, err := json.Marshal(result.Structured); err == nil {
		total += len(text)
	}
	return total
}
