// Who is refused before a request is looked at. A page of another site can make a browser send requests here, under a name of its own
// if it rebinds that to the loopback address (CVE-2025-66414 and CVE-2025-49596 were such vulnerabilities); so the host, the origin and what the
// browser states about the page are checked on each request.

package web

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/daemon/access"
	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/contract"
)

type connKey struct{}

func connOf(r *http.Request) net.Conn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return conn
}

// policy lets a page load and call nothing but what is here, and makes no markup of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guarded passes on what no other site and no process of a call has sent.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		err := checkAim(r)
		if err == nil {
			err = access.CheckBrowser(connOf(r))
		}
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkAim refuses a request that another site could have made a browser send. The navigation to a page is let through from
// everywhere: it is how the dashboard is opened, and it gives nothing to the site.
func checkAim(r *http.Request) error {
	if !isLocal(r.Host) {
		return apierror.New(codes.PermissionDenied, "wrong_authority", "The request is for a host that is not this machine's loopback address.")
	}
	if origin := r.Header.Get("Origin"); len(r.Header.Values("Origin")) > 0 && origin != "http://"+r.Host {
		return apierror.New(codes.PermissionDenied, "browser_origin", "The request comes from another web page.")
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	return apierror.New(codes.PermissionDenied, "browser_origin", "The request comes from another web page.")
}

// isLocal reports whether a host, with its port, is a loopback address or localhost.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return false
	}
	if name == "localhost" {
		return true
	}
	at, err := netip.ParseAddr(name)
	return err == nil && at.IsLoopback()
}

// bearer returns the token that a request has.
func bearer(r *http.Request) (token string, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") || len(r.Header.Values("Authorization")) != 1 {
		return "", apierror.New(codes.Unauthenticated, "no_token", "The request has no token. Open the dashboard with `toold dashboard`; metrics have tokens of their own, in metrics-tokens of the state directory.")
	}
	return token, nil
}

// metrics serves the metrics to those with a token for them.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	token, err := bearer(r)
	admitted := false
	if err == nil {
		admitted, err = s.MetricsToken(token)
	}
	if err == nil && !admitted {
		err = apierror.New(codes.Unauthenticated, "wrong_token", "The token is not in metrics-tokens of the state directory.")
	}
	if err == nil {
		err = access.AdmitBrowser(connOf(r), "metrics")
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.Metrics.ServeHTTP(w, r)
}

// identify returns what the request's token is for.
func (s *Server) identify(r *http.Request) (grant Grant, err error) {
	token, err := bearer(r)
	if err != nil {
		return grant, err
	}
	grant, ok := s.tokens.find(token)
	if !ok {
		return grant, apierror.New(codes.Unauthenticated, "wrong_token", "The token is not good any more. Open the dashboard again with `toold dashboard`.")
	}
	return grant, access.AdmitBrowser(connOf(r), grant.Who)
}

// token trades a code for a token.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&sent); err != nil {
		s.refuse(w, r, status.Error(codes.InvalidArgument, "The body is not an object with a code."))
		return
	}
	token := s.tokens.trade(sent.Code)
	if token == "" {
		s.refuse(w, r, apierror.New(codes.Unauthenticated, "wrong_code", "The code has been used or is too old. Open the dashboard again with `toold dashboard`."))
		return
	}
	answer(w, http.StatusOK, map[string]string{"token": token})
}

// refuse answers with an error, and logs it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	reason := ""
	if refused, is := errors.AsType[*apierror.Error](err); is {
		reason = refused.Reason
	}
	s.Log.Warn("a request of a browser was refused: "+reason, zap.String("from", r.RemoteAddr), zap.Error(err))
	fail(w, err)
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	failure := contract.FailureOf(err)
	answer(w, statusOf(codes.Code(failure.Code)), map[string]any{"error": failure})
}

// statusOf returns HTTP's code for gRPC's; as https://cloud.google.com/apis/design/errors#handling_errors maps them.
func statusOf(code codes.Code) int {
	switch code {
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client has gone
}
