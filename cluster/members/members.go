// Package members reports which nodes of a cluster live, and which of them to
// prefer for a workspace.
//
// A node announces itself by a message each 2 s. A node that was not heard for
// 10 s is asked directly, and is suspect if it does not answer. The addresses of
// nodes and whether they are to be drained stand in the bucket toold_nodes.
//
// Nothing here is a lease: who owns a workspace is decided by the workspace's
// log only. A wrong answer, for instance since a clock has jumped, delays calls
// and loses nothing.
package members

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// subject is where nodes announce themselves.
const subject = "toold.nodes"

// Load is what a node has to do.
type Load struct {
	Workspaces int `json:"workspaces"` // that it owns
	Sessions   int `json:"sessions"`   // that have a stream attached
}

// A Node is a node as it has last announced itself.
type Node struct {
	Name     string `json:"name"`
	Address  string `json:"address"` // HOST:PORT of its gRPC server
	Version  string `json:"version"`
	Draining bool   `json:"draining"` // it takes no workspace that it does not have
	Load     Load   `json:"load"`
	Ended    string `json:"ended,omitempty"` // what its last drain has ended, one thing on each line
}

// Config is what Members needs. The intervals have defaults.
type Config struct {
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Replicas  int // of the bucket, if it is made; 0: 1
	// Ping asks a node whether it serves. Nil: only announcements count.
	Ping func(ctx context.Context, node Node) error
	// Suspected is called with each node that becomes suspect, and why its ping has failed. It must not block. Nil: not.
	Suspected func(node Node, why error)
	// Every is how often a node announces itself, and how often Members asks
	// those that are suspect. 0: 2 s.
	Every time.Duration
	// Silence is how long a node may be silent before it is asked. 0: 10 s.
	Silence time.Duration
}

// Defaults of Config.
const (
	defaultEvery   = 2 * time.Second
	defaultSilence = 10 * time.Second
)

func (c *Config) setDefaults() {
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.Silence == 0 {
		c.Silence = defaultSilence
	}
}

// Members is a view of the nodes of a cluster. Its methods are safe for
// concurrent use, and none of them blocks.
type Members struct {
	config Config
	end    context.CancelFunc
	loops  sync.WaitGroup

	mu      sync.Mutex // guards the rest
	nodes   map[string]*member
	changed chan struct{} // closed at the next change
}

// A member is what is known of a node.
type member struct {
	Node
	drain   bool      // an administrator wants it drained
	heard   time.Time // by the monotonic clock; zero: never
	suspect bool
}

// Open returns a view that is kept up to date until Close. It knows the nodes
// of the bucket from the beginning, and asks each of them at once.
func Open(ctx context.Context, config Config) (*Members, error) {
	config.setDefaults()
	bucket, err := Bucket(ctx, config.JetStream, nodesBucket, config.Replicas, 0)
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	m := &Members{config: config, end: end, nodes: map[string]*member{}, changed: make(chan struct{})}
	heard, err := config.NATS.Subscribe(subject, func(message *nats.Msg) { m.hear(message.Data) })
	if err != nil {
		end()
		return nil, err
	}
	entries, err := bucket.WatchAll(running)
	if err != nil {
		_ = heard.Unsubscribe()
		end()
		return nil, err
	}
	m.readAll(entries)
	m.loops.Go(func() { m.follow(running, entries) })
	m.loops.Go(func() {
		m.maintain(running)
		_ = heard.Unsubscribe()
	})
	return m, nil
}

// Close ends the view.
func (m *Members) Close() {
	m.end()
	m.loops.Wait()
}

// hear takes an announcement. What cannot be read is not one.
func (m *Members) hear(data []byte) {
	var node Node
	if err := json.Unmarshal(data, &node); err != nil || node.Name == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.member(node.Name)
	before := *known
	known.Node, known.heard, known.suspect = node, time.Now(), false
	if !node.Draining { // the end of a drain is waited for
		before.Load = node.Load
	}
	if before.Node != node || before.suspect || before.heard.IsZero() {
		m.notify()
	}
}

// member returns what is known of a node. The caller holds mu.
func (m *Members) member(name string) *member {
	known := m.nodes[name]
	if known == nil {
		known = &member{Node: Node{Name: name}}
		m.nodes[name] = known
	}
	return known
}

// notify wakes those who wait for a change. The caller holds mu.
func (m *Members) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// maintain asks the nodes that were not heard: each as soon as it has been silent for long enough, and those that are suspect at intervals.
func (m *Members) maintain(ctx context.Context) {
	for {
		m.askSilent(ctx)
		select {
		case <-time.After(m.untilSilent()):
		case <-ctx.Done():
			return
		}
	}
}

// untilSilent returns when the next node will have been silent for long enough, at most the interval.
func (m *Members) untilSilent() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := m.config.Every
	for _, known := range m.nodes {
		if !known.suspect {
			until = min(until, m.config.Silence-time.Since(known.heard))
		}
	}
	return until
}

// askSilent asks each node that was not heard, and returns when all have answered
// or the time is over. No node is suspect before it was asked.
func (m *Members) askSilent(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, m.config.Every)
	defer cancel()
	var asked sync.WaitGroup
	for _, node := range m.silent() {
		asked.Go(func() {
			err := errNoPing
			if m.config.Ping != nil {
				err = m.config.Ping(asking, node)
			}
			if ctx.Err() != nil { // the view is closed, which is no answer
				return
			}
			if m.conclude(node.Name, err == nil) && m.config.Suspected != nil {
				m.config.Suspected(node, err)
			}
		})
	}
	asked.Wait()
}

func (m *Members) silent() (nodes []Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.nodes {
		if time.Since(known.heard) >= m.config.Silence {
			nodes = append(nodes, known.Node)
		}
	}
	return nodes
}

// errNoPing is why a silent node is suspect where none is asked.
var errNoPing = errors.New("it was silent for too long")

// conclude notes whether a silent node has answered, unless it was heard since. It reports whether the node has become suspect.
func (m *Members) conclude(name string, answered bool) (suspected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.nodes[name]
	if known == nil || time.Since(known.heard) < m.config.Silence {
		return false
	}
	if answered {
		known.heard = time.Now()
	}
	if known.suspect == answered {
		known.suspect = !answered
		m.notify()
		return known.suspect
	}
	return false
}

// Changed returns a channel that is closed when a node comes, goes, is suspect or
// not any more, or announces something else than before. A node's load does not
// count: it changes all the time.
func (m *Members) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Node returns a node by its name. Its address is that of its last announcement,
// else of the bucket.
func (m *Members) Node(name string) (Node, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.nodes[name]
	if known == nil {
		return Node{}, false
	}
	return known.view(), true
}

// Suspect reports whether a node is silent and does not answer, or is not known.
func (m *Members) Suspect(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.nodes[name]
	return known == nil || known.suspect
}

// Live returns the nodes that are not suspect, in the order of their names.
func (m *Members) Live() []Node { return m.list(func(known *member) bool { return !known.suspect }) }

// All returns the nodes that are known, in the order of their names.
func (m *Members) All() []Node { return m.list(func(*member) bool { return true }) }

func (m *Members) list(include func(*member) bool) (nodes []Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for known := range maps.Values(m.nodes) {
		if include(known) {
			nodes = append(nodes, known.view())
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

func (k *member) view() Node {
	node := k.Node
	node.Draining = node.Draining || k.drain
	return node
}

// Announce announces a node at intervals until ctx ends, the first time before
// it returns. now is called for each announcement, on one goroutine at a time.
// The caller waits for the returned function before it closes the connection.
func Announce(ctx context.Context, config Config, now func() Node) (wait func(), err error) {
	config.setDefaults()
	if err := announce(config.NATS, now()); err != nil {
		return nil, err
	}
	var loop sync.WaitGroup
	loop.Go(func() {
		tick := time.NewTicker(config.Every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = announce(config.NATS, now()) // the next one may succeed, and silence is what members notice
			case <-ctx.Done():
				return
			}
		}
	})
	return loop.Wait, nil
}

func announce(conn *nats.Conn, node Node) error {
	text, err := json.Marshal(node)
	if err != nil {
		return err
	}
	return conn.Publish(subject, text)
}
