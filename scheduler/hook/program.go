// Which file a hook's program is. A hook is the project's or its user's, and the working directory is wherever calls have
// led: whatever lies there must not answer in the hook's stead. What a shell makes of a line is not known here; only the
// word that the line begins with is looked at.

package hook

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/tools/ellipsis"
	"github.com/toold/toold/tools/pathname"
)

// find returns the file of a program: by its path, a relative one from the project's directory, or in the PATH of environ.
// What is relative there is passed over.
func find(program, project string, environ []string) (string, error) {
	if strings.Contains(program, "/") {
		if !filepath.IsAbs(program) {
			program = filepath.Join(project, program)
		}
		return program, nil
	}
	for _, entry := range environ {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, place := range filepath.SplitList(list) {
			if path := filepath.Join(place, program); filepath.IsAbs(place) && pathname.Executable(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the program %q is not in PATH", program)
}

// projectDirs stand for the project's directory in the program and the arguments of a hook that no shell reads.
var projectDirs = []string{"${CLAUDE_PROJECT_DIR}", "${TOOLD_PROJECT_DIR}"}

// part is the beginning of a relative path that a shell takes as it is written.
const part = `[^\s"'$~=;|&()<>\\#*?{}!/` + "`" + `]+/`

// relative finds a relative path as the first word of a line for a shell, behind assignments.
var relative = regexp.MustCompile(`^\s*(?:[A-Za-z_]\w*=[^\s"']*\s+)*("` + part + `[^"]*"|'` + part + `[^']*'|` + part + `[^\s"';|&()<>]*)`)

// adrift returns a clause about a hook program whose path is relative, with what was probably meant; empty: it is absolute.
func (h *Hook) adrift() string {
	if script, ok := h.script(); ok {
		words := relative.FindStringSubmatch(script)
		if words == nil {
			return ""
		}
		return fmt.Sprintf("the program %s of the %s hook is relative to the working directory, in which anything may lie; \"$CLAUDE_PROJECT_DIR\"/%s is probably meant",
			ellipsis.Bytes(words[1], 80), h.Event, ellipsis.Bytes(strings.TrimPrefix(words[1], "./"), 80))
	}
	anchored := func(dir string) bool { return strings.HasPrefix(h.Command, dir) }
	if !strings.Contains(h.Command, "/") || filepath.IsAbs(h.Command) || slices.ContainsFunc(projectDirs, anchored) {
		return ""
	}
	meant := "an absolute path" // no shell is there to make one of it
	if !strings.ContainsAny(h.Command[:1], "~$") {
		meant = projectDirs[0] + "/" + ellipsis.Bytes(strings.TrimPrefix(h.Command, "./"), 80)
	}
	return fmt.Sprintf("the program %s of the %s hook is relative, and looked for in the project's directory; %s is probably meant", ellipsis.Bytes(h.Command, 80), h.Event, meant)
}

// script returns the line that a shell gets to run.
func (h *Hook) script() (line string, ok bool) {
	switch {
	case h.Args == nil:
		return h.Command, true
	case (h.Command == "sh" || h.Command == "bash") && len(h.Args) > 1 && h.Args[0] == "-c":
		return h.Args[1], true
	}
	return "", false
}
