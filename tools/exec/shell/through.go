// Names in /proc and /dev that lead to the directories and open files of a process,
// as the kernel follows them. Each process is taken to be one of the script's.

package shell

import "strings"

// throughProc reports whether a name leads elsewhere through /proc or /dev/fd, and what
// it names then: an absolute path, or one that begins with "./" in the directory
// where the command runs. known is false where that lies below an open file, which
// may be any directory; the path is what would follow that directory.
//
//	/dev/fd/../cwd/.env       ./.env
//	/proc/1/root/etc/shadow   /etc/shadow
func throughProc(name string) (to string, known, through bool) {
	if !strings.HasPrefix(name, "/") || !strings.Contains(name, "/proc") && !strings.Contains(name, "/dev") {
		return "", false, false
	}
	parts := strings.FieldsFunc(name, func(c rune) bool { return c == '/' })
	var at []string // the directory so far
	for i, part := range parts {
		switch part {
		case ".":
			continue
		case "..":
			at = at[:max(0, len(at)-1)]
			continue
		}
		at = procNames(append(at, part))
		rest := strings.Join(parts[i+1:], "/")
		switch kind := procKind(at); {
		case kind == "cwd":
			return "./" + rest, true, true
		case kind == "root":
			at, through = nil, true
		case kind == "fd" && rest != "" && !strings.HasPrefix(rest+"/", "../"):
			return "./" + rest, false, true
		}
	}
	if !through {
		return "", false, false
	}
	return "/" + strings.Join(at, "/"), true, true
}

// procNames follows the links of /dev and /proc to a process.
func procNames(at []string) []string {
	switch {
	case len(at) == 2 && at[0] == "dev" && at[1] == "fd":
		return []string{"proc", "self", "fd"}
	case len(at) == 2 && at[0] == "dev" && listed(" stdin stdout stderr ", at[1]):
		return []string{"proc", "self", "fd", at[1]}
	case len(at) == 4 && at[0] == "proc" && at[2] == "task":
		return []string{"proc", at[1]}
	}
	return at
}

// procKind is what a directory is to a process: "cwd", "root", "fd" for one of its
// open files, or nothing of these.
func procKind(at []string) string {
	switch {
	case len(at) == 3 && at[0] == "proc" && (at[2] == "cwd" || at[2] == "root"):
		return at[2]
	case len(at) == 4 && at[0] == "proc" && at[2] == "fd":
		return "fd"
	}
	return ""
}

// leadsThrough lists what a word names through /proc: all else of a device is not
// listed.
func (a *listing) leadsThrough(w Word) {
	if w.holds() {
		a.vague() // one of the matches may
	}
	for _, p := range w.paths() {
		for _, cwd := range append(a.cwds[:len(a.cwds):len(a.cwds)], ".") {
			if _, _, through := throughProc(join(cwd, p)); through {
				a.read(p)
				break
			}
		}
	}
}

// followed is a full path, or what it leads to through /proc, seen from every
// directory that the shell may be in.
func (a *findings) followed(full string) (paths []string) {
	to, known, through := throughProc(full)
	switch {
	case !through:
		return []string{full}
	case !known, a.cwds == nil && relative(to):
		a.vague()
		return nil
	case !relative(to):
		return []string{to}
	}
	for _, cwd := range a.cwds {
		paths = append(paths, join(cwd, to))
	}
	return paths
}
