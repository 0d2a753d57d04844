// A model's own tool that shows files and lists directories: which of the two a call does is found out when its turn comes, since
// an earlier call may make the one or the other.

package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/tools"
)

// A viewer is a tool of which a call is one of another tool if the path that it names is that of a directory when its turn comes.
type viewer struct {
	tools.Tool
	file    string // the input that it is about; another, of a hook or an answer, is one of the tool itself
	listing tools.Tool
	input   json.RawMessage // of a call of listing
	isDir   func() bool
}

func (v *viewer) Parse(input json.RawMessage) (tools.Action, error) {
	action, err := v.Tool.Parse(input)
	if err != nil || string(input) != v.file {
		return action, err
	}
	list, err := v.listing.Parse(v.input)
	return &viewing{action, list, v.isDir}, err
}

type viewing struct {
	tools.Action
	list  tools.Action
	isDir func() bool
}

// At returns the action that the path is for.
func (v *viewing) At(*tools.Env) tools.Action {
	if v.isDir() {
		return v.list
	}
	return v.Action
}

// viewerOf returns the tool for a use that lists a directory with another tool, if the session has that one.
func (in inlet) viewerOf(r *request, tool tools.Tool, options *tooldv1.Options) tools.Tool {
	if r.listing == nil || tool == nil {
		return tool
	}
	list := in.s.tools.lookUp(r.listing.Name, options)
	if list == nil {
		return tool
	}
	var named struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(r.listing.Input), &named) != nil || !filepath.IsAbs(named.Path) {
		return tool // which reports what is wrong with it
	}
	return &viewer{tool, string(r.use.Input), list, json.RawMessage(r.listing.Input), func() bool {
		info, err := os.Stat(in.s.judge.latest().places.Disk(named.Path))
		return err == nil && info.IsDir()
	}}
}
