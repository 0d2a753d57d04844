// Hooks that are URLs: the event is sent by POST, and the response is the hook's answer. The
// daemon's environment has no influence on the destination: no proxy, no cookies. A redirect is not
// followed and counts as a failure.

package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/text/ellipsis"
)

// post sends the event and parses the response.
func (r Runner) post(ctx context.Context, h *Hook, input []byte) ending {
	request, err := r.request(ctx, h, input)
	if err != nil {
		return ending{failure: err.Error()}
	}
	transport := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxErr}
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return ending{failure: h.unanswered(ctx, err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxOut+1))
	if err != nil {
		return ending{failure: h.unanswered(ctx, err)}
	}
	return answered(response, body)
}

// answered converts a response: success with a JSON object, or without a body, is the hook's
// answer.
func answered(response *http.Response, body []byte) ending {
	text := string(bytes.TrimSpace(body))
	switch {
	case response.StatusCode >= 300 && response.StatusCode < 400:
		to := ellipsis.Bytes(response.Header.Get("Location"), 200)
		return ending{failure: fmt.Sprintf("answered with a redirect to %q, which is not followed", to)}
	case response.StatusCode < 200 || response.StatusCode >= 300:
		return ending{failure: fmt.Sprintf("answered with the status %d", response.StatusCode)}
	case len(body) > maxOut:
		return ending{failure: fmt.Sprintf("answered with more than %d bytes", maxOut)}
	case text != "" && text[0] != '{':
		return ending{failure: "answered with something that is not a JSON object"}
	}
	return ending{out: text}
}

// unanswered returns, as a clause, why there is no answer. It does not contain the URL, which may
// hold a secret.
func (h *Hook) unanswered(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return h.stopped(ctx)
	}
	if about, ok := errors.AsType[*url.Error](err); ok {
		err = about.Err
	}
	return fmt.Sprintf("could not be asked: %v", err)
}

// request returns the request. The error is a clause.
func (r Runner) request(ctx context.Context, h *Hook, input []byte) (*http.Request, error) {
	to, err := url.Parse(h.URL)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" {
		return nil, errors.New("has a URL that is not one of http or https")
	}
	if r.AllowedURLs != nil && !slices.ContainsFunc(r.AllowedURLs, func(pattern string) bool { return allows(pattern, to) }) {
		return nil, errors.New("was not asked: its URL is not in allowedHttpHookUrls")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(input))
	if err != nil {
		return nil, errors.New("has a URL that cannot be asked")
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range h.Headers {
		request.Header.Set(name, r.fill(value, h.AllowedEnvVars))
	}
	return request, nil
}

// variable matches a header's reference to the environment.
var variable = regexp.MustCompile(`\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// fill replaces allowed variables in a header; an unset one becomes empty. Everything else stays
// unchanged.
func (r Runner) fill(text string, allowed []string) string {
	return variable.ReplaceAllStringFunc(text, func(reference string) string {
		name := strings.Trim(reference, "${}")
		if !slices.Contains(allowed, name) {
			return reference
		}
		for _, entry := range slices.Backward(r.Environ) {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	})
}

// allows reports whether a pattern of the allow list matches a URL. A * stands for any characters,
// but never for those that end the host, so that it cannot match another host.
func allows(pattern string, to *url.URL) bool {
	if pattern == "*" {
		return true
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok || slices.Contains(strings.Split(to.Path, "/"), "..") {
		return false
	}
	host, path, _ := strings.Cut(rest, "/")
	target := strings.TrimPrefix(to.EscapedPath(), "/")
	if to.RawQuery != "" {
		target += "?" + to.RawQuery
	}
	return permission.Like(scheme, to.Scheme) && permission.Like(strings.ToLower(host), strings.ToLower(to.Host)) && permission.Like(path, target)
}
