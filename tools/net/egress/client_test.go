package egress

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What no entry allows is asked about, unless no yes could help, and nothing is looked up before.
func TestAsk(t *testing.T) {
	port := strings.TrimPrefix(origin(t), "127.0.0.1:")
	for _, tt := range []struct {
		host   string
		answer Reason
		want   string // the beginning of the response
		asked  string
		noted  string
	}{
		{"93.184.215.14:1", NotPermitted, "403", "93.184.215.14:1", "not_permitted"},
		{"unanswered.example:443", Unanswered, "403", "unanswered.example:443", "unanswered"},
		{"Unlisted.example.:443", NotAllowed, "403", "unlisted.example:443", "not_allowed"},
		{"private.example:" + port, "", "403", "private.example:" + port, "private_address"}, // after the yes, and at the dial
		{"opened.example:" + port, "", "200", "opened.example:" + port, ""},
		{"denied.example:443", "", "403", "", "denied"},
		{"127.0.0.1:" + port, "", "403", "", "not_allowed"},
		{"10.0.0.1:80", "", "403", "", "not_allowed"},
		{"169.254.169.254:80", "", "403", "", "not_allowed"},
		{"[::1]:80", "", "403", "", "not_allowed"},
		{"[::ffff:192.168.0.1]:80", "", "403", "", "not_allowed"},
		{"localhost:" + port, "", "403", "", "not_allowed"},
		{"a.localhost:" + port, "", "403", "", "not_allowed"},
	} {
		t.Run(tt.host, func(t *testing.T) {
			b := newBooth(t, Policy{Denied: []string{"denied.example"}, Opened: []string{"opened.example"}}, map[string][]string{
				"private.example.": {"127.0.0.1"}, "opened.example.": {"127.0.0.1"},
			}, usual)
			var asked []string
			b.ask = func(_ context.Context, host string, port uint16) Reason {
				asked = append(asked, fmt.Sprintf("%s:%d", host, port))
				return tt.answer
			}
			answer := b.exchange(t, "GET http://"+tt.host+"/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(answer, "HTTP/1.1 "+tt.want) {
				t.Errorf("the answer is %q, want %s", answer, tt.want)
			}
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("it asked about %q, want %q", got, tt.asked)
			}
			if got := strings.Join(b.noted(), " "); !strings.HasSuffix(got, tt.noted) || got != "" && tt.noted == "" {
				t.Errorf("it noted %q, want %q", got, tt.noted)
			}
		})
	}
}

// A question ends with the connection that waits for it, and with the proxy.
func TestAskEndsWithItsConnection(t *testing.T) {
	b := newBooth(t, Policy{}, nil, usual)
	begun, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	b.ask = func(ctx context.Context, _ string, _ uint16) Reason {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return Unanswered
	}
	for _, end := range []func(io.Closer){
		func(c io.Closer) { c.Close() },
		func(io.Closer) { b.proxy.Close() },
	} {
		c := b.dial(t)
		if _, err := io.WriteString(c, "CONNECT y.example:443 HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-begun
		end(c)
		<-ended
	}
}

// Each request has the policy of its own client, also when others are served at the same time.
func TestClients(t *testing.T) {
	b := newBooth(t, Policy{}, nil, usual)
	host := origin(t)
	b.proxy.clients = func(_, user string) (Client, bool) {
		if user == "one" {
			return Client{Policy: Policy{Allowed: []string{"127.0.0.1"}}}, true
		}
		return Client{}, user == "other"
	}
	answers := make([]string, 30)
	var all sync.WaitGroup
	for i, credentials := range slices.Repeat([]string{"b25lOng=", "b3RoZXI6eA==", "bm9ib2R5Ong="}, 10) {
		all.Go(func() {
			answers[i] = b.exchange(t, "GET http://"+host+"/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nProxy-Authorization: Basic "+credentials+"\r\n\r\n")
		})
	}
	all.Wait()
	for i, answer := range answers {
		want := []string{"HTTP/1.1 200", "may not be reached", "does not know whose"}[i%3]
		if !strings.Contains(answer, want) {
			t.Errorf("client %d got %q, want %q", i, answer, want)
		}
	}
}
