//go:build !no_web

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestFetchInside: the session's settings, those of its workspace among them, decide whether a page of this machine is fetched,
// and no proxy that the environment names learns of it.
func TestFetchInside(t *testing.T) {
	var fetched, proxied atomic.Int32
	serve := func(n *atomic.Int32) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			fmt.Fprint(w, "the page")
		}))
		t.Cleanup(server.Close)
		return server
	}
	site, proxy := serve(&fetched), serve(&proxied)
	byAddress, byName := site.URL+"/", strings.Replace(site.URL, "127.0.0.1", "localhost", 1)+"/"
	for name, c := range map[string]struct {
		user, workspace string
		url             string
		want            string // in all that is said
	}{
		"nothing is said":              {"", "", byAddress, "host_refused"},
		"nothing is said of localhost": {"", "", byName, "host_refused"},
		"the address":                  {`"permissions":{"allow":["WebFetch(domain:127.0.0.1)"]}`, "", byAddress, "the page"},
		"the address, not the name":    {`"permissions":{"allow":["WebFetch(domain:127.0.0.1)"]}`, "", byName, "host_refused"},
		"the very name":                {`"permissions":{"allow":["WebFetch(domain:LocalHost.)"]}`, "", byName, "the page"},
		"the name, not the address":    {`"permissions":{"allow":["WebFetch(domain:localhost)"]}`, "", byAddress, "host_refused"},
		"all hosts":                    {`"permissions":{"allow":["WebFetch","WebFetch(domain:*)"]},"sandbox":{"network":{"allowedDomains":["*"]}}`, "", byAddress, "host_refused"},
		"the workspace opens it":       {"", `"permissions":{"allow":["WebFetch(domain:127.0.0.1)"]}`, byAddress, "the page"},
		"the workspace denies it":      {`"permissions":{"allow":["WebFetch(domain:localhost)"]}`, `"permissions":{"deny":["WebFetch(domain:127.0.0.1)"]}`, byName, "host_refused"},
	} {
		t.Run(name, func(t *testing.T) {
			environ, ws := home(t)
			for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
				environ = append(environ, variable+"="+proxy.URL)
			}
			environ = append(environ, "NO_PROXY=", "no_proxy=", "HOME="+filepath.Dir(ws))
			put(t, filepath.Join(filepath.Dir(ws), "config", "toold", "settings.json"), "{"+c.user+"}")
			put(t, filepath.Join(ws, ".toold", "settings.json"), "{"+c.workspace+"}")
			if out, err := self(t, t.Context(), environ, ws, "trust").CombinedOutput(); err != nil {
				t.Fatalf("toold trust: %v\n%s", err, out)
			}
			before := fetched.Load()
			out, _ := self(t, t.Context(), environ, ws, "call", "WebFetch", fmt.Sprintf(`{"url":%q}`, c.url), "--mode", "bypassPermissions").CombinedOutput()
			hits := fetched.Load() - before
			if !strings.Contains(string(out), c.want) || (hits == 1) != (c.want == "the page") || hits > 1 {
				t.Errorf("%d requests; it says\n%s\nwant %q in it", hits, out, c.want)
			}
			if n := proxied.Load(); n > 0 {
				t.Errorf("the proxy had %d requests", n)
			}
		})
	}
}
