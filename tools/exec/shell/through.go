// Names in /proc and /dev that lead to the directories and open files of a process,
// as the kernel follows them. Each process is taken to be one of the script's.

package shell

import (
	"path"
	"regexp"
	"strings"
)

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
	at := "/" // the directory so far
	leads := func(pattern string) bool { fits, _ := path.Match(pattern, at); return fits }
	for i, part := range parts {
		if at = path.Join(at, part); part == "." || part == ".." {
			continue
		}
		rest := strings.Join(parts[i+1:], "/")
		switch at = procTask.ReplaceAllString(devLink.ReplaceAllString(at, "/proc/self/fd$1"), "$1"); {
		case leads("/proc/*/cwd"):
			return "./" + rest, true, true
		case leads("/proc/*/root"):
			at, through = "/", true
		case leads("/proc/*/fd/*") && rest != "" && !strings.HasPrefix(rest+"/", "../"):
			return "./" + rest, false, true
		}
	}
	if !through {
		return "", false, false
	}
	return at, true, true
}

// devLink and procTask are the links of /dev and /proc to a process.
var (
	devLink  = regexp.MustCompile(`^/dev(?:/fd|(/std(?:in|out|err)))$`)
	procTask = regexp.MustCompile(`^(/proc/[^/]+)/task/[^/]+$`)
)

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
