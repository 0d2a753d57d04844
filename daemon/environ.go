// The environment of a session's calls: the client's variables, what settings set, and what calls
// have exported.

package daemon

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toold/toold/daemon/settings"
)

// variables are what client and calls have set for the calls that follow. They are not changed once
// they are made.
type variables struct {
	client  map[string]string // the client's; not kept
	caching map[string]string // those of them that say where caches are
	exports exports
	latest  atomic.Pointer[environ]
}

// An environ is variables under some settings, as NAME=value, by name. It must not be modified.
type environ struct {
	settings *settings.Settings
	base     []string // without what calls have exported
	calls    []string
}

// withClient returns the variables with those of another client.
func (v *variables) withClient(client map[string]string) *variables {
	return &variables{client: client, caching: cacheVariables(client), exports: v.exports}
}

// withExports returns the variables with other exports.
func (v *variables) withExports(e exports) *variables {
	return &variables{client: v.client, caching: v.caching, exports: e}
}

// under returns the environment under some settings.
func (v *variables) under(now *settings.Settings) *environ {
	if e := v.latest.Load(); e != nil && e.settings == now {
		return e
	}
	all := maps.Clone(v.client)
	if len(all) == 0 {
		all = daemonEnviron()
	}
	for _, set := range now.Env {
		all[set.Name] = set.Value
	}
	e := &environ{settings: now, base: listed(all)}
	if len(v.exports.Unset)+len(v.exports.Set) == 0 {
		e.calls = e.base
		v.latest.Store(e)
		return e
	}
	for _, name := range v.exports.Unset {
		delete(all, name)
	}
	maps.Copy(all, v.exports.Set)
	e.calls = listed(all)
	v.latest.Store(e)
	return e
}

// listed returns an environment as NAME=value, by name.
func listed(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// daemonEnviron is what calls get of the daemon's own environment when the client has sent none.
func daemonEnviron() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains([]string{"PATH", "HOME", "USER", "SHELL", "LANG", "TMPDIR"}, name) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	return env
}
