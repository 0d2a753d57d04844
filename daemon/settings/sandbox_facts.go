// What one file says of the sandbox. Whatever a workspace says that would loosen it is left out here, whether it is trusted
// or not: no other file can make it count.

package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/sandbox"
)

// confinement is what one file says of the sandbox, by the keys.
type confinement struct {
	flags    map[string]*flag
	rolls    map[string][]Entry // as written, but for domains
	excluded []permission.Rule
	limits   map[string]*processLimit
}

// A processLimit is one that a file sets, in bytes if it is of bytes.
type processLimit struct {
	value  int64
	text   string // as written
	origin permission.Origin
}

const onlyStricter = "a workspace can only make the sandbox stricter"

func (r *reader) sandbox(m member) {
	r.facts.sandbox = confinement{flags: map[string]*flag{}, rolls: map[string][]Entry{}, limits: map[string]*processLimit{}}
	r.section("sandbox.", m)
}

// section reads the object of the sandbox that name is of, with a dot behind it.
func (r *reader) section(name string, whole member) {
	for _, m := range r.members(&whole.value, name) {
		key := name + m.key
		switch {
		case slices.Contains(sandboxKeys, key):
			r.sandboxKey(key, m, &whole.value)
		case isSection(key + "."):
			r.section(key+".", m)
		case slices.Contains(otherSandbox, key):
			if !m.value.isEmpty() && m.value.word != "false" {
				r.warn(m.line, "%s has no effect: it is about Claude Code's own sandbox, and has no meaning here", key)
			}
		default:
			r.unknown(m, name, namesIn(name))
		}
	}
}

func isSection(name string) bool {
	return !strings.Contains(name, "\x00") && slices.ContainsFunc(sandboxKeys, func(key string) bool { return strings.HasPrefix(key, name) })
}

// namesIn gives the names that mean something in a section, each once.
func namesIn(section string) []string {
	var names []string
	for _, key := range sandboxKeys {
		if rest, within := strings.CutPrefix(key, section); within {
			name, _, _ := strings.Cut(rest, ".")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sandboxKey reads one of sandboxKeys. in is the object that it stands in.
func (r *reader) sandboxKey(key string, m member, in *node) {
	switch key {
	case keyUnavailable:
		if in.last(strings.TrimPrefix(keyRequired, "sandbox.")) != nil {
			r.idle(m.line, key, keyRequired+" says the same, and stands here too")
			return
		}
		r.toggle(&toggles[slices.IndexFunc(toggles, func(t toggle) bool { return t.key == keyRequired })], key, m)
	case keyExcluded:
		r.excluded(key, m)
	case keyDomainsOnly:
		r.keepFlag(key, r.managedFlag(&m.value, key))
	case keyLocal:
		r.flag(&m.value, key)
	default:
		r.tabled(key, m)
	}
}

// tabled reads a key of one of the tables.
func (r *reader) tabled(key string, m member) {
	if at := slices.IndexFunc(toggles, func(t toggle) bool { return t.key == key }); at >= 0 {
		r.toggle(&toggles[at], key, m)
	} else if at := slices.IndexFunc(rolls, func(l roll) bool { return l.key == key }); at >= 0 {
		r.roll(&rolls[at], m)
	} else if at := slices.IndexFunc(processBounds, func(b processBound) bool { return b.key == key }); at >= 0 {
		r.processLimit(&processBounds[at], m)
	}
}

func (r *reader) keepFlag(key string, f *flag) {
	if f != nil {
		r.facts.sandbox.flags[key] = f
	}
}

// toggle reads t, as the file names it.
func (r *reader) toggle(t *toggle, name string, m member) {
	f := r.flag(&m.value, name)
	if f != nil && f.on && t.key == keySharedTmp && r.place.level == session {
		r.idle(m.line, name+" "+m.value.word, "only the user's or the administrator's file opens the machine's temporary files to a session")
		return
	}
	if f != nil && r.place.level == workspace && f.on != t.strict {
		r.idle(m.line, name+" "+m.value.word, onlyStricter)
		return
	}
	r.keepFlag(t.key, f)
}

// loosening reports that a workspace says something that would loosen the sandbox.
func (r *reader) loosening(key string, m member) bool {
	if r.place.level != workspace {
		return false
	}
	if !m.value.isEmpty() {
		r.idle(m.line, key, onlyStricter)
	}
	return true
}

func (r *reader) excluded(key string, m member) {
	if r.loosening(key, m) {
		return
	}
	for _, t := range r.texts(&m.value, key) {
		command := strings.TrimSpace(t.word)
		switch bare, isRule := strings.CutPrefix(command, "Bash("); {
		case command == "" || len(command) > maxRuleBytes:
			r.wrong(&t, "an entry of "+key, fmt.Sprintf("a command of at most %d bytes, which may hold *", maxRuleBytes))
		case isRule && strings.HasSuffix(bare, ")"):
			r.warn(t.line, "an entry of %s is %s, but commands stand there without Bash(...); it has no effect; %q is probably meant", key, &t, shortened(strings.TrimSuffix(bare, ")")))
		default:
			rule, err := permission.ParseRule(permission.AllowList, "Bash("+command+")", r.origin(t.line))
			if err != nil {
				r.report(err.Error())
				continue
			}
			r.facts.sandbox.excluded = append(r.facts.sandbox.excluded, rule)
		}
	}
}

func (r *reader) roll(l *roll, m member) {
	if l.loose && r.loosening(l.key, m) {
		return
	}
	if m.value.kind != list {
		r.wrong(&m.value, l.key, "a list of texts")
		return
	}
	for i := range m.value.items {
		at := r.item(l, &m.value.items[i])
		if at == nil {
			continue
		}
		if word, expected := l.sort.read(at.word); expected != "" {
			r.wrong(at, "an entry of "+l.key, expected)
		} else if l.sort == variableSort && l.loose && sandbox.Unsafe(word) {
			r.idle(at.line, fmt.Sprintf("%q in %s", shortened(word), l.key), "it would change what programs run")
		} else {
			r.facts.sandbox.rolls[l.key] = append(r.facts.sandbox.rolls[l.key], Entry{word, r.origin(at.line)})
		}
	}
}

// item gives the text of an entry; nil: there is none. Claude Code's credentials are objects that have it as a member, and a
// mode, which can be nothing stricter than the denial that each is here.
func (r *reader) item(l *roll, n *node) *node {
	if n.kind == object && l.member != "" {
		if at := n.last(l.member); at != nil {
			n = &at.value
		}
	}
	if n.kind != text {
		r.wrong(n, "an entry of "+l.key, "a text")
		return nil
	}
	return n
}

// read gives what an entry stands for, or says what is expected in its place.
func (s sort) read(word string) (value, expected string) {
	switch s {
	case domainSort:
		host := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(word)), ".")
		if host == "" || strings.ContainsAny(host, "/:@ \t\n\x00") {
			return "", "a domain without scheme, port and path, such as example.com or *.example.com"
		}
		return host, ""
	case variableSort:
		if middle := strings.TrimSuffix(strings.TrimPrefix(word, "*"), "*"); word == "" || strings.ContainsAny(middle, "*=\x00") {
			return "", "a name of an environment variable, with * at its beginning or its end at most"
		}
		return word, ""
	}
	path := strings.TrimSuffix(word, "/**")
	switch {
	case path == "" && word != "":
		return "/", ""
	case path == "" || strings.Contains(path, "\x00"):
		return "", "a path"
	case strings.Contains(path, "*"):
		return "", "a path without *, since what the kernel confines are places; Read(...) and Edit(...) rules know patterns"
	case path[0] == '$' || path[0] == '~' && path != "~" && path[1] != '/':
		return "", "an absolute path, one that begins with ~/, or a relative one: variables and names of users are not looked up"
	}
	return path, ""
}

func (r *reader) processLimit(b *processBound, m member) {
	const most = math.MaxInt32 // so that it is a number on every machine, and so are the bytes of as many MB
	value, err := strconv.ParseInt(m.value.word, 10, 64)
	if m.value.kind != number || err != nil || value < 1 || value > most {
		r.wrong(&m.value, b.key, fmt.Sprintf("a whole number from 1 to %d", most))
		return
	}
	r.facts.sandbox.limits[b.key] = &processLimit{value * b.unit, m.value.word, r.origin(m.value.line)}
}
