package settings

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toold/toold/scheduler/hook"
)

// longestHook is how long a hook may take at most: a call waits for it.
const longestHook = 10 * time.Minute

// hooks are the hooks of all files.
type hooks struct{}

func (hooks) read(r *reader, _ *key, m member) any {
	for _, event := range r.members(&m.value, "hooks.") {
		if !slices.Contains(hook.Events, event.key) {
			r.unknown(event, "hooks.", hook.Events)
		}
		if event.value.kind != list {
			r.wrong(&event.value, "hooks."+shortened(event.key), "a list of {matcher, hooks}")
			r.lost(event.key, "", event.line)
			continue
		}
		for i := range event.value.items {
			r.group(event.key, &event.value.items[i])
		}
	}
	return r.hooks
}

// lost puts a guard in the place of the administrator's hooks that cannot be read. It fails each time, for every call that
// they may have been for.
func (r *reader) lost(event, matcher string, line int) {
	if r.place.level == managed {
		r.warn(line, "since the administrator's hooks block when they fail, every call that these may be for is denied until that is fixed")
		r.hooks = append(r.hooks, hook.Hook{
			Event: event, Matcher: matcher, Origin: r.origin(line), Block: true, Broken: "the settings do not say which hooks these are",
		})
	}
}

// group reads the hooks of one event that share a matcher.
func (r *reader) group(event string, n *node) {
	matcher, legible := "", true
	var handlers *node
	members := r.members(n, "an entry of hooks."+shortened(event)+".")
	if n.kind != object {
		r.lost(event, "", n.line)
		return
	}
	for _, m := range members {
		switch {
		case m.key == "hooks":
			handlers = &m.value
		case m.key != "matcher":
			r.unknown(m, "", []string{"matcher", "hooks"})
		case m.value.kind != text:
			r.warn(m.line, "matcher of an entry of hooks.%s is %s, but must be a text; its hooks never run, but for those that block when they fail, which run for everything", shortened(event), &m.value)
			legible = false
		default:
			matcher = m.value.word
		}
	}
	if handlers == nil || handlers.kind != list {
		r.warn(n.line, "the entry of hooks.%s has no list \"hooks\"; nothing runs for it", shortened(event))
		r.lost(event, matcher, n.line)
		return
	}
	for i := range handlers.items {
		n := &handlers.items[i]
		h := handler{reader: r, hook: hook.Hook{Event: event, Matcher: matcher, Origin: r.origin(n.line), Block: r.place.level == managed}}
		if h.read(n); h.hook.Block || legible && h.hook.Broken == "" {
			r.hooks = append(r.hooks, h.hook)
		}
	}
}

// A handler is one hook while it is read. A hook of which a part that decides what runs, or when, makes no sense is left out as
// a whole: half of it would be another hook. A guard, which blocks when it fails, stays: if it is not clear when it runs, it runs
// for everything, and if it is not clear what it runs, it fails each time.
type handler struct {
	reader *reader
	shell  string
	hook   hook.Hook
}

// fields returns the functions that read the parts of a hook, and report what is wrong. Type and onFailure are read before: what
// others mean depends on them.
func (h *handler) fields() map[string]func(*node) {
	async := func(n *node) {
		if n.word == "true" {
			h.reader.warn(n.line, "hooks in the background are not supported; calls wait for this one")
		}
	}
	return map[string]func(*node){
		"type":      func(*node) {},
		"onFailure": func(*node) {},
		"command":   func(n *node) { h.hook.Command = h.text(n, "command") },
		"args":      h.args,
		"shell": func(n *node) {
			if h.shell = n.word; n.kind != text || n.word != "bash" && n.word != "sh" {
				h.wrong(n, "shell", `"bash" or "sh"`)
			}
		},
		"url": func(n *node) {
			h.hook.URL = h.text(n, "url")
			if h.hook.Broken == "" && webURL(h.hook.URL) == nil {
				h.void(n.line, "url of a hook is %s, but must begin with http:// or https:// and name a host", n)
			}
		},
		"headers": func(n *node) {
			h.hook.Headers = map[string]string{}
			for _, m := range h.reader.members(n, "headers of a hook.") {
				if m.value.kind != text {
					h.reader.wrong(&m.value, "the header "+shortened(m.key)+" of a hook", "a text")
					continue
				}
				h.hook.Headers[m.key] = m.value.word
			}
		},
		"timeout": func(n *node) {
			h.hook.Timeout = h.reader.duration(n, "timeout of a hook", "a number of seconds above 0", longestHook, number)
		},
		"if":    h.condition,
		"async": async, "asyncRewake": async,
		"allowedEnvVars": func(n *node) {
			names, _ := texts(nil, nil).read(h.reader, &key{name: "allowedEnvVars of a hook"}, member{value: *n}).([]Entry)
			h.hook.AllowedEnvVars = plain(names)
		},
	}
}

// read reads the hook, and leaves in Broken why it cannot be run.
func (h *handler) read(n *node) {
	if n.kind != object {
		h.void(n.line, "a hook of %s is %s, but must be an object", shortened(h.hook.Event), n)
		return
	}
	members := h.reader.members(n, "a hook of "+shortened(h.hook.Event)+".")
	if m := n.last("onFailure"); m != nil {
		h.onFailure(&m.value)
	}
	kind := ""
	if t := n.last("type"); t != nil {
		kind = t.value.word
	}
	if kind != "command" && kind != "http" {
		h.void(n.line, "a hook of type %q is not served (\"command\" and \"http\" are)", shortened(kind))
		return
	}
	fields := h.fields()
	for _, m := range members {
		if read, known := fields[m.key]; known {
			read(&m.value)
		} else {
			h.reader.unknown(m, "", slices.Collect(maps.Keys(fields)))
		}
	}
	switch {
	case h.hook.Broken != "":
	case kind == "command" && h.hook.Command == "":
		h.void(n.line, `a hook of type "command" needs a "command"`)
	case kind == "http" && h.hook.URL == "":
		h.void(n.line, `a hook of type "http" needs a "url"`)
	case h.hook.Command != "" && h.hook.URL != "":
		h.void(n.line, `a hook has either a "command" or a "url"`)
	case h.shell != "" && h.hook.Args == nil && h.hook.Command != "":
		h.hook.Command, h.hook.Args = h.shell, []string{"-c", h.hook.Command}
	}
}

// void reports that the hook cannot be run. A guard denies for that reason what it cannot check.
func (h *handler) void(line int, format string, values ...any) {
	if h.hook.Broken == "" {
		h.hook.Broken = fmt.Sprintf(format, values...)
	}
	consequence := "; the hook never runs"
	if h.hook.Block {
		consequence = "; since the hook blocks when it fails, it holds back what it is for until that is fixed"
	}
	h.reader.warn(line, format+consequence, values...)
}

func (h *handler) wrong(n *node, name, expected string) {
	h.void(n.line, "%s of a hook is %s, but must be %s", name, n, expected)
}

func (h *handler) text(n *node, name string) string {
	if n.kind != text || n.word == "" {
		h.wrong(n, name, "a text that is not empty")
		return ""
	}
	return n.word
}

func (h *handler) args(n *node) {
	h.hook.Args = []string{}
	if n.kind != list {
		h.wrong(n, "args", "a list of texts")
	}
	for i := range n.items {
		if n.items[i].kind != text {
			h.wrong(&n.items[i], "an entry of args", "a text")
			return
		}
		h.hook.Args = append(h.hook.Args, n.items[i].word)
	}
}

// condition reads when the hook runs. If that is not clear, a guard runs for everything.
func (h *handler) condition(n *node) {
	why := fmt.Sprintf("if of a hook is longer than %d bytes", maxRuleBytes)
	switch {
	case n.kind != text || n.word == "":
		why = fmt.Sprintf("if of a hook is %s, but must be a text that is not empty", n)
	case len(n.word) <= maxRuleBytes:
		h.hook.If = n.word
		return
	}
	if h.hook.Block {
		h.reader.warn(n.line, "%s; since the hook blocks when it fails, it runs without it, for everything", why)
	} else {
		h.void(n.line, "%s", why)
	}
}

func (h *handler) onFailure(n *node) {
	if n.kind != text || n.word != "block" && n.word != "continue" {
		h.reader.wrong(n, "onFailure of a hook", `"block" or "continue"`)
	} else if n.word == "block" { // "continue" is what it does anyway
		h.hook.Block = true
	}
}
