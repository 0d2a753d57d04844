//go:build linux

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// TestNATSIsChecked: a node does not begin with a server that acknowledges what is not on the disk.
func TestNATSIsChecked(t *testing.T) {
	for want, options := range map[string]*server.Options{
		"":                            {JetStream: true, SyncAlways: true},
		"sync_interval to always":     {JetStream: true},
		`server "x" has no JetStream`: {},
	} {
		options.ServerName, options.Host, options.Port, options.HTTPHost, options.HTTPPort = "x", "127.0.0.1", server.RANDOM_PORT, "127.0.0.1", server.RANDOM_PORT
		options.StoreDir, options.NoLog, options.NoSigs = t.TempDir(), true, true
		s, err := server.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		err = (&common{}).checkServers(t.Context(), zap.NewNop(), []string{"http://" + s.MonitorAddr().String() + "/"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the error is %v, want %q", err, want)
		}
		s.Shutdown()
		s.WaitForShutdown()
	}
	if err := (&common{}).checkServers(t.Context(), zap.NewNop(), nil); err != nil {
		t.Error(err)
	}
}

// TestMonitorIsSomethingElse: what does not answer as a NATS server is waited for, not believed.
func TestMonitorIsSomethingElse(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, err := readVarz(t.Context(), other.URL); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("the error is %v", err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	defer page.Close()
	if _, err := readVarz(t.Context(), page.URL); err == nil || !strings.Contains(err.Error(), "not of a NATS server") || !strings.Contains(err.Error(), "8222") {
		t.Errorf("the error is %v", err)
	}
	old := &varz{Version: "2.12.1"}
	if fault := old.fault(); fault != "has no JetStream" {
		t.Errorf("the fault is %q", fault)
	}
	old.JetStream.Config = &struct {
		SyncAlways bool `json:"sync_always"`
	}{true}
	if fault := old.fault(); !strings.Contains(fault, "2.12.1") {
		t.Errorf("the fault is %q", fault)
	}
}
