//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/toold/toold/cluster/identity"
)

// Certificates are warned of when they expire within soon, at the start and then at intervals.
const (
	soon          = 30 * day
	day           = 24 * time.Hour
	lookAtExpiry  = day
	ownName       = "own"       // of the node or gateway
	authorityName = "authority" // of the cluster
	usersName     = "users"     // which a gateway shows to users, if it is not its own
)

// expiry is when certificates expire, by what they are. The keys are the names above.
type expiry map[string]time.Time

// expiryOf returns that of what a node or gateway uses. users is a gateway's configuration for users; nil: there is none.
func expiryOf(id *identity.Identity, users *tls.Config) expiry {
	own, authority := id.Expiry()
	all := expiry{ownName: own, authorityName: authority}
	if users != nil {
		if shown := users.Certificates[0].Leaf; !shown.NotAfter.Equal(own) {
			all[usersName] = shown.NotAfter
		}
	}
	return all
}

// watch warns of what expires soon until end is called, and reports in the metrics how many days are left.
func (e expiry) watch(log *zap.Logger, r *prometheus.Registry) (end func()) {
	for name, until := range e {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "toold_cluster_certificate_days_left", Help: "In how many days a certificate expires; negative: it has expired.",
			ConstLabels: prometheus.Labels{"certificate": name},
		}, func() float64 { return time.Until(until).Hours() / day.Hours() }))
	}
	e.warn(log, time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		ticks := time.NewTicker(lookAtExpiry)
		defer ticks.Stop()
		for {
			select {
			case now := <-ticks.C:
				e.warn(log, now)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); watching.Wait() }
}

// warn logs what expires soon or has expired.
func (e expiry) warn(log *zap.Logger, now time.Time) {
	for name, until := range e {
		left := until.Sub(now)
		fields := []zap.Field{zap.String("certificate", name), zap.Time("until", until), zap.Int("days_left", int(left/day))}
		switch {
		case left <= 0:
			log.Error("a certificate has expired: renew it with \"toold-cluster init\" and restart", fields...)
		case left < soon:
			log.Warn("a certificate expires soon: renew it with \"toold-cluster init\" and restart", fields...)
		}
	}
}
