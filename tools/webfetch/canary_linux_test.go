package webfetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/net/web"
	"github.com/toold/toold/tools/tooltest"
	"github.com/toold/toold/tools/tooltest/ownspace"
)

// inner are addresses that no public host has, of every kind.
var inner = strings.Fields(`
	0.0.0.0 0.0.0.1 10.0.0.1 10.255.255.254 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254
	169.254.170.2 172.16.0.1 172.31.255.254 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.254 198.18.0.1 198.51.100.1
	203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
	:: ::1 ::2 64:ff9b::7f00:1 64:ff9b:1::7f00:1 100::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002::1 2002:7f00:1::1 3fff::1
	4000::1 5f00::1 8000::1 e000::1 fc00::1 fd00:ec2::254 fd20:ce::254 fdff::1 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1`)

// spelt returns ways to write the address as the host of a URL, right ones and such as some resolver has taken for it.
func spelt(address netip.Addr) []string {
	if address.Is6() {
		text, long := address.String(), address.StringExpanded()
		return []string{
			"[" + text + "]", "[" + long + "]", "[" + strings.ToUpper(text) + "]", "[" + text + "%25lo]", "[" + text + "%251]", "[" + text + "%lo]",
			"[" + text + ".]", "[" + text + "].", text, "[[" + text + "]]", "[" + text, "[v1." + text + "]", "[" + strings.ReplaceAll(text, ":", "%3a") + "]",
		}
	}
	b := address.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	plain := address.String()
	mapped := func(form string) string {
		return strings.NewReplacer("DOTTED", plain, "HEX", fmt.Sprintf("%x:%x", n>>16, n&0xffff), "INVERTED", fmt.Sprintf("%x:%x", ^n>>16, ^n&0xffff)).Replace(form)
	}
	each := func(format, between string) string {
		var parts []string
		for _, part := range b {
			parts = append(parts, fmt.Sprintf(format, part))
		}
		return strings.Join(parts, between)
	}
	list := []string{
		plain, plain + ".", plain + "..", "." + plain, "[" + plain + "]", fmt.Sprint(n), fmt.Sprintf("%#x", n), fmt.Sprintf("0X%X", n), fmt.Sprintf("0%o", n),
		fmt.Sprint(uint64(n) + 1<<32), fmt.Sprintf("0x1%08x", n), fmt.Sprintf("%d.%d", b[0], n&0xffffff), fmt.Sprintf("%d.%d.%d", b[0], b[1], n&0xffff),
		fmt.Sprintf("%d.%#x", b[0], n&0xffffff), fmt.Sprintf("%d.%d.%d.%d", int(b[0])+256, b[1], b[2], b[3]), fmt.Sprintf("%#x.%d.0%o.%d", b[0], b[1], b[2], b[3]),
		each("0%o", "."), each("%04o", "."), each("%#x", "."), each("%#08x", "."), each("%03d", "."), each("%d", "%2e"), each("%d", "\u3002"), each("%d", "\uff0e"), each("%d", "\uff61"),
		each("%d", "."+"\u200b"), each("%d", "\u00ad."), each("+%d", "."), each("%d", "-"), plain + "%00", plain + "%0a", plain + "\u00a0", plain + ":0x50",
	}
	for _, digits := range []string{"\uff10", "\u0660", "\u06f0", "\u0966", "\U0001d7ce", "\U0001d7d8"} { // zeros; nine more stand behind each
		list = append(list, strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return []rune(digits)[0] + r - '0'
			}
			return r
		}, plain))
	}
	list = append(list, strings.NewReplacer("1", "\u2460", "2", "\u2461", "0", "\u24ea").Replace(plain), strings.NewReplacer("1", "\u00b9", "2", "\u00b2", "0", "\u2070").Replace(plain))
	escaped := ""
	for _, c := range []byte(plain) {
		escaped += fmt.Sprintf("%%%02x", c)
	}
	list = append(list, escaped, strings.ReplaceAll(escaped, "%", "%25"))
	for _, form := range strings.Fields(`[::ffff:DOTTED] [::ffff:HEX] [::FFFF:HEX] [0:0:0:0:0:ffff:HEX] [::ffff:DOTTED%25lo] [::DOTTED] [::HEX] [::ffff:0:DOTTED] [::1:0:DOTTED]
		[64:ff9b::DOTTED] [64:ff9b:1::DOTTED] [64:ff9b:1:ffff::DOTTED] [2002:HEX::] [2002:HEX::1] [2001:0:HEX::INVERTED] [2001::INVERTED]
		[2606:4700::5efe:DOTTED] [2606:4700::200:5efe:DOTTED] [fe80::5efe:DOTTED] ::ffff:DOTTED`) {
		list = append(list, mapped(form))
	}
	return list
}

// tricks are URLs that are read in two ways, or by nobody else in the way in which they are read here; INNER stands for an
// address. What they name by the one reading that counts is inside, or nothing.
var tricks = strings.Split(`http://public.example@INNER/|http://public.example:80@INNER/|http://@INNER/|http://:@INNER/|http://INNER:80@public.example/|http://INNER#@public.example/
http://INNER\@public.example/|http://INNER\.public.example/|http://INNER;public.example/|http://INNER,public.example/|http://INNER?@public.example/|http://INNER:80:80/|http://INNER:+80/
http://INNER:080/|http://INNER: 80/|http:// INNER/|http://INNER /|http:/INNER/|http:INNER/|http:///INNER/|http:\\INNER/|//INNER/|INNER|INNER/|ht	tp://INNER/|http://INN	ER/| http://INNER/
HTTP://INNER/|hTTps://INNER/|http://INNER:00000000080/|http://INNER:65616/|http://INNER%2f@public.example/|http://INNER%23@public.example/|http://public.example%40INNER/|http://public.example%20@INNER/
ftp://INNER/|file://INNER/|file:///proc/self/environ|gopher://INNER:80/_GET|dict://INNER:80/|ws://INNER/|jar:http://INNER/!/|view-source:http://INNER/|data:text/plain,a|blob:http://INNER/|javascript:fetch("http://INNER/")
unix:///run/a.sock|http+unix://INNER/|https+insecure://INNER/|feed:http://INNER/`, "|")

// hosts are names for this machine that need no name server, or that it is asked for.
var hosts = strings.Fields(`localhost LOCALHOST localhost. LocalHost. a.localhost a.b.localhost. localhost.localdomain ip6-localhost ip6-loopback broadcasthost
	l%6fcalhost ｌｏｃａｌｈｏｓｔ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhost%00 localhost%2e kubernetes.default.svc metadata metadata.google.internal instance-data host.docker.internal 0 0x 00 1 127 []` + " loc\u00adalhost")

// An outdoors is a network in which everything answers: what is public with pages, what is not with a canary's note.
type outdoors struct {
	t       *testing.T
	canary  canary
	fetcher *fetcher
	tool    tools.Tool
	env     *tools.Env
}

func newOutdoors(t *testing.T, zone names) *outdoors {
	o := &outdoors{t: t, canary: listen(t, 80, nil)}
	secure := httptest.NewUnstartedServer(nil)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	server := &http.Server{Handler: http.HandlerFunc(serveOutdoors), ErrorLog: log.New(io.Discard, "", 0), TLSConfig: secure.TLS}
	var served sync.WaitGroup
	for _, serve := range []func() error{
		func() error { return server.Serve(o.canary) },
		func() error { return server.Serve(listen(t, 8080, &o.canary)) },
		func() error { return server.ServeTLS(listen(t, 443, &o.canary), "", "") },
	} {
		served.Go(func() {
			if err := serve(); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("the canary has died: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		server.Close()
		served.Wait()
	})
	limits := web.Limits{Connect: 5 * time.Second, Header: 10 * time.Second, Idle: 10 * time.Second, Bytes: 1 << 20}
	o.fetcher = &fetcher{client: web.Client{Limits: limits, Agent: "toold/test", Resolver: zone.resolver(t), Roots: rootsOf(secure)}, pages: newCache(), upgrade: time.Minute}
	o.tool, o.env = newTool(o.fetcher), tooltest.NewFiles(t, t.TempDir()).Env()
	o.env.Reach = tools.Reach{Allowed: []string{"*", "*.example", "in*.example", "127.0.0.*", "elsewhere.example"}}
	return o
}

// serveOutdoors answers with what the query says: a status, headers, a body.
func serveOutdoors(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "text/html")
	status := http.StatusOK
	for key, values := range query {
		switch key {
		case "status":
			_, _ = fmt.Sscan(values[0], &status)
		case "body":
		default:
			w.Header()[key] = values
		}
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<p>public by %s for %s<p>%s", r.Proto, r.Host, query.Get("body"))
}

// fetch returns the result and the code of the error, and lets nothing inside be connected to.
func (o *outdoors) fetch(target string) (tools.Result, string) {
	o.t.Helper()
	coded, err := json.Marshal(map[string]string{"url": target})
	if err != nil {
		o.t.Fatal(err)
	}
	action, err := o.tool.Parse(coded)
	var result tools.Result
	if err == nil {
		if _, err = action.Check(o.t.Context(), o.env); err == nil {
			result, err = action.Run(o.t.Context(), o.env)
		}
	}
	if hits := o.canary.take(); len(hits) > 0 {
		o.t.Errorf("%q: connections were made to %v (%v)", target, hits, err)
	}
	return result, tooltest.Code(err)
}

// refused wants that the target is not fetched.
func (o *outdoors) refused(target string) {
	o.t.Helper()
	if result, code := o.fetch(target); !slices.Contains([]string{"invalid_input", "host_refused", "host_unreachable"}, code) {
		o.t.Errorf("%q: code %q, %.300v", target, code, result)
	}
}

// proxied is an environment that names the canary as the proxy for everything.
var proxied = []string{
	"HTTP_PROXY=http://127.0.0.1:8080", "HTTPS_PROXY=http://127.0.0.1:8080", "ALL_PROXY=socks5://127.0.0.1:8080", "http_proxy=http://10.0.0.1:8080",
	"https_proxy=https://10.0.0.1:443", "all_proxy=http://127.0.0.1:8080", "NO_PROXY=", "no_proxy=", "GODEBUG=http2client=1",
}

// The canary notes what it should: without that the other tests would say nothing.
func TestCanary(t *testing.T) {
	if !ownspace.InNetwork(t) {
		return
	}
	o := newOutdoors(t, names{"public.example.": {public[0].String()}})
	want := map[string]int{}
	for _, text := range inner {
		address := netip.MustParseAddr(text)
		for _, port := range []uint16{80, 443, 8080} {
			conn, err := net.Dial("tcp", netip.AddrPortFrom(address, port).String())
			if err != nil {
				continue // an address of many, or of a link
			}
			to := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
			want[netip.AddrPortFrom(to.Addr().Unmap(), to.Port()).String()]++
			// The answer to a request shows that the connection was accepted, and noted.
			fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
			_, _ = io.ReadAll(conn)
			conn.Close()
		}
	}
	got := map[string]int{}
	for to, n := range o.canary.take() {
		at := netip.MustParseAddrPort(to)
		got[netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()] += n
	}
	if !maps.Equal(got, want) || len(want) < 100 {
		t.Errorf("the canary noted %v, and connected to were %v", got, want)
	}
	result, code := o.fetch("http://public.example:8080/")
	if code != "" || !strings.Contains(result.Content[0].Text, "public by HTTP/1.1 for public.example:8080") {
		t.Errorf("what is public is not reached: %q, %+v", code, result)
	}
}

// However an address is written, it is not connected to.
func TestSpellings(t *testing.T) {
	if !ownspace.InNetwork(t, proxied...) {
		return
	}
	o := newOutdoors(t, names{"public.example.": {public[0].String()}, "instance-data.": {"169.254.169.254"}, "metadata.google.internal.": {"169.254.169.254"}})
	for _, text := range inner {
		for _, host := range spelt(netip.MustParseAddr(text)) {
			for _, form := range []string{"http://%s/", "http://%s:8080/", "https://%s/"} {
				o.refused(fmt.Sprintf(form, host))
			}
		}
	}
	for _, host := range hosts {
		o.refused("http://" + host + "/")
		o.refused("https://" + host + ":8080/")
	}
	for _, text := range []string{"127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "localhost", "2130706433"} {
		for _, trick := range tricks {
			o.refused(strings.ReplaceAll(trick, "INNER", text))
		}
	}
}

// Whatever a name server answers, and however often it changes its mind, only what is public is connected to.
func TestNames(t *testing.T) {
	if !ownspace.InNetwork(t, proxied...) {
		return
	}
	zone := names{"in.example.": {"127.0.0.1 ::1"}, "loop.example.": {"loop.example."}}
	for i, text := range inner {
		zone[fmt.Sprintf("n%d.example.", i)] = []string{text}
		zone[fmt.Sprintf("alias%d.example.", i)] = []string{fmt.Sprintf("n%d.example.", i)}
		zone[fmt.Sprintf("mapped%d.example.", i)] = []string{netip.AddrFrom16(netip.MustParseAddr(text).As16()).String()}
	}
	zone["toalias.example."] = []string{"public.example.", "in.example."}
	zone["localhost.example."] = []string{"localhost."}
	few := strings.Join(inner[:27], " ")
	for name, turns := range map[string][]string{
		"before": {few + " " + public[0].String()}, "behind": {public[0].String() + " " + few}, "six": {"::1 fd00::1 fe80::1 " + public[1].String()},
		"both": {"127.0.0.1 ::1 " + public[0].String() + " " + public[1].String()},
	} {
		zone[name+".mixed.example."] = turns
	}
	o := newOutdoors(t, zone)
	for name := range zone {
		if name = strings.TrimSuffix(name, "."); !strings.HasSuffix(name, "mixed.example") && name != "toalias.example" {
			for _, form := range []string{"http://%s/", "http://%s:8080/", "https://%s/", "http://%s.:8080/"} {
				o.refused(fmt.Sprintf(form, strings.ToUpper(name)))
			}
			continue
		}
		if _, code := o.fetch("http://" + name + ":8080/"); code != "" && name != "toalias.example" {
			t.Errorf("%s has a public address, and gives %q", name, code)
		}
	}
}

// A name that changes between two questions: at each connection it is asked again, and what it says then counts.
func TestRebinding(t *testing.T) {
	if !ownspace.InNetwork(t, proxied...) {
		return
	}
	ok := public[0].String()
	zone := names{}
	for i, text := range inner {
		zone[fmt.Sprintf("a%d.example.", i)] = []string{ok, text}
		zone[fmt.Sprintf("b%d.example.", i)] = []string{text, ok, text, ok, text}
		zone[fmt.Sprintf("c%d.example.", i)] = []string{ok, ok, text + " " + ok, text}
	}
	o := newOutdoors(t, zone)
	for name := range zone {
		at := "http://" + strings.TrimSuffix(name, ".") + ":8080/"
		for i := range 4 { // each with a redirect within the host, so that one fetch connects twice
			_, code := o.fetch(fmt.Sprintf("%s?status=302&Location=%s", at, url.QueryEscape(fmt.Sprintf("/end?%d", i))))
			if code != "" && code != "host_refused" && code != "host_unreachable" {
				t.Errorf("%s, %d: %q", at, i, code)
			}
		}
	}
}

// Wherever a server sends the client, it goes nowhere else by itself.
func TestSentInside(t *testing.T) {
	if !ownspace.InNetwork(t, proxied...) {
		return
	}
	o := newOutdoors(t, names{"public.example.": {public[0].String()}, "other.example.": {public[0].String()}, "in.example.": {"127.0.0.1"}})
	var targets []string
	for _, text := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fe80::1", "64:ff9b::7f00:1"} {
		for _, host := range spelt(netip.MustParseAddr(text)) {
			targets = append(targets, "http://"+host+":8080/")
		}
	}
	for _, trick := range tricks {
		targets = append(targets, strings.ReplaceAll(trick, "INNER", "127.0.0.1"))
	}
	targets = append(targets, "http://localhost/", "//in.example/", "http://in.example:8080/", "https://in.example/", "//127.0.0.1:8080/", `\\127.0.0.1\`, "/\\127.0.0.1:8080/", "////127.0.0.1/", "//public.example@127.0.0.1/")
	codes := []string{"301", "302", "303", "307", "308", "300", "305", "304", "200", "201", "401", "407"}
	for i, target := range targets {
		at := "http://public.example:8080/?Location=" + url.QueryEscape(target) + "&status="
		code := codes[i%5]
		o.fetch(at + code)
		// By way of other pages: of the same host, and then of the one inside.
		hop := at + code
		for range 3 {
			hop = "http://public.example:8080/?status=307&Location=" + url.QueryEscape(hop)
		}
		o.fetch(hop)
	}
	for _, code := range codes {
		result, _ := o.fetch("http://public.example:8080/?status=" + code + "&Location=http%3A%2F%2F127.0.0.1%3A8080%2F")
		if facts, ok := result.Structured.(Fetched); ok && facts.Redirect != "" && facts.Redirect != "http://127.0.0.1:8080/" {
			t.Errorf("%s: it says %+v", code, facts)
		}
	}
	for _, header := range []string{
		"Refresh=0; url=http://127.0.0.1:8080/", `Alt-Svc=h2="127.0.0.1:8080", h3=":443"; persist=1`, "Content-Location=http://127.0.0.1:8080/", "Link=<http://127.0.0.1:8080/>; rel=preload",
		"Proxy-Authenticate=Basic", "Set-Cookie=a=b; Domain=127.0.0.1", "Upgrade=h2c", "Connection=Upgrade", "X-Accel-Redirect=http://127.0.0.1:8080/", "SourceMap=http://127.0.0.1:8080/",
		`Report-To={"endpoints":[{"url":"http://127.0.0.1:8080/"}]}`, `NEL={"report_to":"a"}`, "Strict-Transport-Security=max-age=1",
		`body=<meta http-equiv=refresh content="0; url=http://127.0.0.1:8080/"><base href="http://127.0.0.1:8080/"><img src=a><iframe src="http://127.0.0.1:8080/"></iframe><link rel=stylesheet href=a><script src=a></script><a ping="http://127.0.0.1:8080/" href=a>a</a>`,
	} {
		name, value, _ := strings.Cut(header, "=")
		for _, at := range []string{"http://public.example:8080/", "https://public.example/", "http://public.example/"} {
			target := at + "?" + name + "=" + url.QueryEscape(value)
			for range 2 { // what the first answer says might count at the second
				o.fetch(target)
				clear(o.fetcher.pages.pages)
				o.fetcher.pages.order, o.fetcher.pages.bytes = nil, 0
			}
		}
	}
}

// By TLS the same holds, and a server that would speak HTTP/2, which could name other origins, speaks HTTP/1.1. An http URL
// comes by https where that can be, and else by http, and says so.
func TestSecure(t *testing.T) {
	if !ownspace.InNetwork(t, proxied...) {
		return
	}
	o := newOutdoors(t, names{"example.com.": {public[0].String() + " 127.0.0.1"}, "public.example.": {public[0].String()}})
	for target, want := range map[string]string{
		"https://example.com/": "public by HTTP/1.1 for example.com", "http://example.com/a": "URL: https://example.com/a\n", "http://public.example/": "Fetched by http, not encrypted",
	} {
		result, code := o.fetch(target)
		if code != "" || !strings.Contains(result.Content[0].Text, want) {
			t.Errorf("%s: %q, %+v; want %q", target, code, result, want)
		}
		if facts := result.Structured.(Fetched); facts.Unencrypted != (target == "http://public.example/") {
			t.Errorf("%s: %+v", target, facts)
		}
	}
	if _, code := o.fetch("https://public.example/"); code != "host_unreachable" {
		t.Errorf("a certificate of another name: %q", code)
	}
}
