package node_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toold/toold/cluster/lease"
	"github.com/toold/toold/cluster/node"
)

// TestCheckOrigin: what a source allows is compared with what Git and a server make of the URL.
func TestCheckOrigin(t *testing.T) {
	sources := []string{"https://git.example/team/", "git@git.example:team/", "/srv/git/", "https://git.example/one"}
	for git, want := range map[string]codes.Code{
		"https://git.example/team/a":             codes.OK,
		"https://git.example/team/a.git/":        codes.OK,
		"https://git.example/team/a%20b":         codes.OK,
		"https://git.example/one":                codes.OK,
		"git@git.example:team/a":                 codes.OK,
		"/srv/git/a":                             codes.OK,
		"/srv/git/100%2e":                        codes.OK, // it is not decoded
		"https://git.example/one/more":           codes.PermissionDenied,
		"https://git.example/other/a":            codes.PermissionDenied,
		"HTTPS://git.example/team/a":             codes.PermissionDenied,
		"/srv/other":                             codes.PermissionDenied,
		"https://git.example/team/../other":      codes.InvalidArgument,
		"https://git.example/team/..":            codes.InvalidArgument,
		"https://git.example/team/./a":           codes.InvalidArgument,
		"https://git.example/team//a":            codes.InvalidArgument,
		"https://git.example/team/%2e%2e/other":  codes.InvalidArgument,
		"https://git.example/team/%2E./other":    codes.InvalidArgument,
		"https://git.example/team/..%2fother":    codes.InvalidArgument,
		"https://git.example/team/%252e%252e/x":  codes.InvalidArgument,
		"https://git.example/team/%5c..%5cother": codes.InvalidArgument,
		`https://git.example/team/..\other`:      codes.InvalidArgument,
		"https://git.example/team/?x=/../a":      codes.InvalidArgument,
		"https://git.example/team/#a":            codes.InvalidArgument,
		"https://git.example/team/%zz":           codes.InvalidArgument,
		"git@git.example:team/../other":          codes.InvalidArgument,
		"/srv/git/../other":                      codes.InvalidArgument,
	} {
		if err := node.CheckOrigin(lease.Creation{Git: git}, sources); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", git, err, want)
		}
	}
}
