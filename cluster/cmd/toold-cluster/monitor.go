//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"
)

// Whether a NATS server syncs each write is not told to its clients, only at the server's monitoring address and in its system
// account, which a cluster does not use.

// varz is what is read of /varz.
type varz struct {
	Name      string `json:"server_name"`
	Version   string `json:"version"`
	JetStream struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	} `json:"jetstream"`
}

// fault returns what a cluster cannot have of the server; empty: nothing.
func (v *varz) fault() string {
	switch {
	case v.JetStream.Config == nil:
		return "has no JetStream"
	case !v.JetStream.Config.SyncAlways:
		return "does not sync each write: set sync_interval to always in its section jetstream"
	}
	if err := checkVersion(v.Version); err != nil {
		return "is too old: " + err.Error()
	}
	return ""
}

// readVarz asks a server at its monitoring address.
func readVarz(ctx context.Context, address string) (*varz, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/varz", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, monitorHint)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s; %s", request.URL, response.Status, monitorHint)
	}
	v := &varz{}
	err = json.NewDecoder(io.LimitReader(response.Body, maxVarz)).Decode(v)
	if err == nil && v.Version == "" {
		err = errors.New("it has no version")
	}
	if err != nil {
		return nil, fmt.Errorf("what %s answers is not of a NATS server: %w; %s", request.URL, err, monitorHint)
	}
	return v, nil
}

const (
	maxVarz     = 1 << 20 // bytes of an answer
	monitorHint = "the address is that of the server's setting http, whose port is 8222 as a rule"
)

// checkMonitors returns an error for what cannot be the monitoring address of a server.
func checkMonitors(addresses []string) error {
	for _, address := range addresses {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" {
			return fmt.Errorf("--nats-monitor %q is not the monitoring address of a NATS server: write it as http://HOST:8222", address)
		}
	}
	return nil
}

// checkServers waits until each server has answered, and returns an error for one that a cluster cannot use.
func (c *common) checkServers(ctx context.Context, log *zap.Logger, addresses []string) error {
	if len(addresses) == 0 {
		log.Info("whether NATS syncs each write is not checked: --nats-monitor names the monitoring address of a server")
	}
	for _, address := range addresses {
		var v *varz
		if err := c.patiently(ctx, log, "see the settings of NATS at "+address, func(ctx context.Context) (err error) { v, err = readVarz(ctx, address); return err }); err != nil {
			return err
		}
		if fault := v.fault(); fault != "" {
			return fmt.Errorf("the NATS server %q %s", v.Name, fault)
		}
	}
	return nil
}
