// What a shell leaves to the session: which final directories and exports are kept.

package bash

import (
	"maps"
	"os"
	"strings"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/exec/sandbox"
)

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// changes returns what the shell leaves to the session, if it has reported that and ended by
// itself.
func (r *shellRun) changes(exit sandbox.Exit) (c tools.Changes) {
	r.stayed = r.report == nil
	if !r.lasts {
		return c
	}
	if r.env.Gone != "" {
		c.Dir = r.dir
	}
	if exit.Stopped || exit.Signal != "" || r.report == nil {
		return c
	}
	left, ok := parseReport(readReport(r.report))
	if !ok {
		return c
	}
	switch {
	case left.dir == "" || left.dir == r.dir:
	case r.env.Files.MayWorkIn(left.dir): // it has no links: the kernel has resolved it
		c.Dir = left.dir
	default:
		r.note("The working directory is %s again: %s is outside the roots of the session.", r.dir, left.dir)
	}
	environ, withheld := left.after(r.env.Environ, r.environ, r.env.Box.Filter.Withheld)
	c.Exports = environ
	r.stayed = left.dir == r.dir && maps.Equal(environ, asMap(r.env.Environ))
	if len(withheld) > 0 {
		r.note("Not kept for later commands: %s. Variables that look like credentials, or change what programs run, are not passed on; set them in the command that needs them.", strings.Join(withheld, ", "))
	}
	return c
}
