//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", request.URL, response.Status)
	}
	v := &varz{}
	return v, json.NewDecoder(response.Body).Decode(v)
}

// checkServers waits until each server has answered, and returns an error for one that a cluster cannot use.
func checkServers(ctx context.Context, log *zap.Logger, addresses []string) error {
	if len(addresses) == 0 {
		log.Info("whether NATS syncs each write is not checked: --nats-monitor names the monitoring address of a server")
	}
	for _, address := range addresses {
		var v *varz
		if err := patiently(ctx, log, "see the settings of NATS at "+address, func(ctx context.Context) (err error) { v, err = readVarz(ctx, address); return err }); err != nil {
			return err
		}
		if fault := v.fault(); fault != "" {
			return fmt.Errorf("the NATS server %q %s", v.Name, fault)
		}
	}
	return nil
}
