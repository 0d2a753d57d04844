package natslog_test

import (
	"errors"
	"os"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toold/toold/cluster/log"
	"github.com/toold/toold/cluster/log/logtest"
	"github.com/toold/toold/cluster/log/natslog"
	"github.com/toold/toold/cluster/natstest"
)

func TestMain(m *testing.M) {
	if !natstest.Main() {
		os.Exit(m.Run())
	}
}

func TestOneServer(t *testing.T) {
	s := natstest.Start(t)
	logtest.Test(t, func(t testing.TB) log.Log {
		_, js := natstest.Connect(t, s)
		return natslog.New(js, natslog.Config{Shards: 4})
	})
}

func urls(servers []*server.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.ClientURL())
	}
	return all
}

func TestThreeServers(t *testing.T) {
	servers := natstest.StartCluster(t, 3)
	logtest.Test(t, func(t testing.TB) log.Log {
		_, js := natstest.ConnectCluster(t, urls(servers)...)
		return natslog.New(js, natslog.Config{Shards: 2, Replicas: 3})
	})
}

func TestThreeProcesses(t *testing.T) {
	var all []string
	for _, p := range natstest.StartProcesses(t, 3) {
		all = append(all, p.URL)
	}
	logtest.Test(t, func(t testing.TB) log.Log {
		_, js := natstest.ConnectCluster(t, all...)
		return natslog.New(js, natslog.Config{Shards: 2, Replicas: 3})
	})
}

// A log that ends before the position is not cut: what names objects may be there, and is not known to be outdated.
func TestPurgeBehindTheEnd(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	l, w := natslog.New(js, natslog.Config{Shards: 1}), log.Workspace{Principal: "p", Name: "n"}
	first, err := l.Append(t.Context(), w, 0, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := l.Append(t.Context(), w, first, []byte("y"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Purge(t.Context(), w, last+1); !errors.Is(err, log.ErrUnknown) {
		t.Errorf("behind the end: %v", err)
	}
	for s, err := range l.Read(t.Context(), w, 0) {
		if err != nil || s.Pos != first {
			t.Errorf("the log begins at %d, %v", s.Pos, err)
		}
		break
	}
}

// A stream that was made for another number of shards is refused, and so is one
// that may answer with less than was acknowledged.
func TestStreamsAreChecked(t *testing.T) {
	_, js := natstest.Connect(t, natstest.Start(t))
	w := log.Workspace{Principal: "p", Name: "n"}
	if _, err := natslog.New(js, natslog.Config{Shards: 1}).Append(t.Context(), w, 0, []byte("x")); err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "toold-w-0")
	if err != nil {
		t.Fatal(err)
	}
	good := s.CachedInfo().Config
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"shards":  func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{"toold_shards": "2"} },
		"direct":  func(c *jetstream.StreamConfig) { c.AllowDirect = true },
		"discard": func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
	} {
		c := good
		change(&c)
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(name, err)
		}
		if _, err := natslog.New(js, natslog.Config{Shards: 1}).Last(t.Context(), w); err == nil {
			t.Errorf("%s: the stream is used", name)
		}
	}
}
