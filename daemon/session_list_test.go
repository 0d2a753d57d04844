// The list of sessions, from the client's side.

package daemon_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// TestSessionPages: a list comes in pages that fit into a message, without what is long; none is missed or doubled, whatever
// is made and closed meanwhile.
func TestSessionPages(t *testing.T) {
	h := serve(t)
	const sessions = 25
	var want []string
	for n := range sessions {
		name := fmt.Sprintf("s%02d", n)
		c := h.converse()
		c.attach(&tooldv1.Attach{SessionId: name, Roots: []string{h.root}, Options: settingsOf(200_000)})
		c.cancel()
		want = append([]string{name}, want...)
	}
	whole, err := h.sessions().ListSessions(t.Context(), &tooldv1.ListSessionsRequest{})
	if err != nil || len(whole.GetSessions()) != sessions || whole.GetNextPageToken() != "" {
		t.Fatalf("%d sessions, %q (%v)", len(whole.GetSessions()), whole.GetNextPageToken(), err)
	}
	var got []string
	request := &tooldv1.ListSessionsRequest{PageSize: 10}
	for pages := 1; ; pages++ {
		page, err := h.sessions().ListSessions(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.GetSessions() {
			got = append(got, s.GetSessionId())
			if s.GetOptions().SettingsJson != nil || fmt.Sprint(s.GetOmitted()) != "[options.settings_json]" {
				t.Errorf("%s is listed with %d bytes of settings, without %q", s.GetSessionId(), len(s.GetOptions().GetSettingsJson()), s.GetOmitted())
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			break
		}
		if _, err := h.sessions().CloseSession(t.Context(), &tooldv1.CloseSessionRequest{SessionId: got[len(got)-1]}); err != nil { // the one that the token is of
			t.Fatal(err)
		}
		h.join(fmt.Sprint("new", pages), nil)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("listed\n%q, want\n%q", got, want)
	}
	one, err := h.sessions().GetSession(t.Context(), &tooldv1.GetSessionRequest{SessionId: "s01"})
	if err != nil || len(one.GetSession().GetOptions().GetSettingsJson()) != 200_000 || len(one.GetSession().GetOmitted()) > 0 {
		t.Errorf("the session by itself: %d bytes of settings (%v)", len(one.GetSession().GetOptions().GetSettingsJson()), err)
	}
	for field, bad := range map[string]*tooldv1.ListSessionsRequest{"invalid_page_token": {PageToken: "?"}, "invalid_page_size": {PageSize: -1}} {
		_, err := h.sessions().ListSessions(t.Context(), bad)
		refused(t, err, codes.InvalidArgument, field)
	}
}
