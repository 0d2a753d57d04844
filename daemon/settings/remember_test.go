package settings_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
)

// TestRememberKeepsTheForm shows how a rule is written into files of all forms. The two texts of a row are the file
// before and after "deny Bash(new)" is remembered; | is a line break.
func TestRememberKeepsTheForm(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{
		{`{}`, `{"permissions": {"deny": ["Bash(new)"]}}`},
		{`{}|`, `{"permissions": {"deny": ["Bash(new)"]}}|`},
		{`{|}|`, `{|  "permissions": {|    "deny": [|      "Bash(new)"|    ]|  }|}|`},
		{`{"a":1}`, `{"a":1, "permissions": {"deny": ["Bash(new)"]}}`},
		{`{"permissions":{"deny":["a","b"]}}`, `{"permissions":{"deny":["a","b","Bash(new)"]}}`},
		{`{"permissions": {"deny": ["a"]}}`, `{"permissions": {"deny": ["a", "Bash(new)"]}}`},
		{`{"permissions": {"deny": []}}`, `{"permissions": {"deny": ["Bash(new)"]}}`},
		{`{"permissions": {}, "z": 1}`, `{"permissions": {"deny": ["Bash(new)"]}, "z": 1}`},
		{`{|    "env": {}|}|`, `{|    "env": {},|    "permissions": {|        "deny": [|            "Bash(new)"|        ]|    }|}|`},
		{"{|\t\"permissions\": {|\t\t\"allow\": []|\t}|}|", "{|\t\"permissions\": {|\t\t\"allow\": [],|\t\t\"deny\": [|\t\t\t\"Bash(new)\"|\t\t]|\t}|}|"},
		{`{|  "permissions": {|    "deny": [|      "a"|    ]|  }|}`, `{|  "permissions": {|    "deny": [|      "a",|      "Bash(new)"|    ]|  }|}`},
		{`{|  "permissions": {|    "deny": []|  }|}`, `{|  "permissions": {|    "deny": [|      "Bash(new)"|    ]|  }|}`},
		{`{|  "permissions": {|    "deny": [|    ]|  }|}`, `{|  "permissions": {|    "deny": [|      "Bash(new)"|    ]|  }|}`},
		{`{|  "permissions": {|    "deny": ["a"]|  }|}`, `{|  "permissions": {|    "deny": ["a", "Bash(new)"]|  }|}`},
		{`{|  "permissions": {"deny": [1,|    "a"  ]}|}`, `{|  "permissions": {"deny": [1,|    "a",|    "Bash(new)"  ]}|}`},
		{"{\r|  \"permissions\": {}\r|}\r|", "{\r|  \"permissions\": {\r|    \"deny\": [\r|      \"Bash(new)\"\r|    ]\r|  }\r|}\r|"},
		{"\ufeff{}", "\ufeff" + `{"permissions": {"deny": ["Bash(new)"]}}`},
		{`{"permissions": {"deny": ["a"]}, "permissions": {"deny": ["b"], "deny": ["c"]}}`, `{"permissions": {"deny": ["a"]}, "permissions": {"deny": ["b"], "deny": ["c", "Bash(new)"]}}`},
		{`{"permissions": {"deny": [ " Bash(new) " ]}}`, `{"permissions": {"deny": [ " Bash(new) " ]}}`},
		{`{"permissions": {"deny": ["\u0042ash(new)"]}}`, `{"permissions": {"deny": ["\u0042ash(new)"]}}`},
		// Comments and trailing commas stay where they are; a comment behind an entry stays behind it.
		{`// mine|{"permissions": {/* no */ "deny": ["a",],},}`, `// mine|{"permissions": {/* no */ "deny": ["a", "Bash(new)",],},}`},
		{`{|  "permissions": {|    "deny": [|      "a", // why|      "b" // and why|    ] // end|  }|}`, `{|  "permissions": {|    "deny": [|      "a", // why|      "b", // and why|      "Bash(new)"|    ] // end|  }|}`},
		{`{|  "permissions": {|    "deny": [|      // first|      "a", // why|      // more to come|    ]|  },|}`, `{|  "permissions": {|    "deny": [|      // first|      "a", // why|      // more to come|      "Bash(new)",|    ]|  },|}`},
		{`{|  "permissions": {|    "deny": [ // none|    ]|  }|}`, `{|  "permissions": {|    "deny": [ // none|      "Bash(new)"|    ]|  }|}`},
		{`{|  /* a */ "env": {}, // b|}`, `{|  /* a */ "env": {}, // b|  "permissions": {|    "deny": [|      "Bash(new)"|    ]|  },|}`},
		{`{"permissions": {"allow": ["Bash(new)"]}}`, `{"permissions": {"allow": ["Bash(new)"], "deny": ["Bash(new)"]}}`},
	} {
		h := newHouse(t)
		before, want := strings.ReplaceAll(row[0], "|", "\n"), strings.ReplaceAll(row[1], "|", "\n")
		h.write("home/settings.json", before)
		if _, err := h.store.Remember("", settings.User, permission.DenyList, "Bash(new)"); err != nil {
			t.Errorf("%q: %v", before, err)
		} else if got := h.read("home/settings.json"); got != want {
			t.Errorf("before:\n%s\nafter:\n%s\nwant:\n%s", before, got, want)
		}
	}
}

// Whoever is told of what is written knows it while the file is not yet there.
func TestRememberIsAnnounced(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.mkdir("w")
	h.trust("w")
	var told []string
	sources := h.sources()
	sources.Writing = func(file string) {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is told of when it is there: %v", file, err)
		}
		told = append(told, file)
	}
	store := settings.Open(sources)
	for _, level := range []settings.Level{settings.Local, settings.Project, settings.User} {
		file, err := store.Remember(h.path("w"), level, permission.AllowList, "Bash(x)")
		if err != nil || len(told) == 0 || told[len(told)-1] != file {
			t.Errorf("level %d: %q, %v; told of %q", level, file, err, told)
		}
	}
}

func TestRememberLevels(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.mkdir("w")
	h.trust("w")
	for level, file := range map[settings.Level]string{
		settings.Local: "w/.toold/settings.local.json", settings.Project: "w/.toold/settings.json", settings.User: "home/settings.json",
	} {
		for _, rule := range []string{"Bash(npm run test *)", "Bash(a <b> && c)", "Bash(npm run test *)"} {
			got, err := h.store.Remember(h.path("w"), level, permission.AllowList, " "+rule+" ")
			if err != nil || got != h.path(file) {
				t.Errorf("level %d: %q, %v; want %s", level, got, err, file)
			}
		}
		if got, want := h.read(file), `{"permissions": {"allow": ["Bash(npm run test *)", "Bash(a <b> && c)"]}}`+"\n"; got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
		}
		if got := h.standing("w"); got != "trusted" {
			t.Errorf("%s: the workspace is no longer trusted: %s", file, got)
		}
	}
	if got := texts(h.load("w")); got != "allow Bash(npm run test *); allow Bash(a <b> && c)" {
		t.Errorf("in force: %q", got)
	}
}

// TestRememberInAnEmptyWorkspace: where there is nothing to distrust, the first rule is all there is.
func TestRememberInAnEmptyWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.mkdir("w")
	if _, err := h.store.Remember(h.path("w"), settings.Local, permission.AllowList, "Bash(make *)"); err != nil {
		t.Fatal(err)
	}
	if got := h.standing("w"); got != "trusted" {
		t.Errorf("the workspace is %s", got)
	}
	if got := texts(h.load("w")); got != "allow Bash(make *)" {
		t.Errorf("in force: %q", got)
	}
	h.write("w/.toold/settings.json", `{"permissions": {"allow": ["Bash(rm *)"]}}`)
	if got := texts(h.load("w")); got != "" {
		t.Errorf("in force after another program's file: %q", got)
	}
}

func TestRememberInAnUntrustedWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", "{}")
	refused := func(want string) {
		t.Helper()
		_, err := h.store.Remember(h.path("w"), settings.Local, permission.AllowList, "Bash(make *)")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "toold trust "+h.path("w")) {
			t.Errorf("error %v, want one with %q that says how to trust", err, want)
		}
	}
	refused("is not trusted")
	if _, err := os.Stat(h.path("w/.toold/settings.local.json")); err == nil {
		t.Error("a file was made for nothing")
	}
	if _, err := h.store.Remember(h.path("w"), settings.Local, permission.DenyList, "Bash(rm *)"); err != nil {
		t.Errorf("a deny rule is refused: %v", err)
	}
	if got := h.standing("w"); got != "never" {
		t.Errorf("writing made the workspace %s", got)
	}
	h.trust("w")
	h.write("w/.toold/settings.json", `{"env": {}}`)
	refused("has changed since it was trusted (.toold/settings.json)")
	if _, err := h.store.Remember(h.path("w"), settings.Local, permission.AskList, "Bash(mv *)"); err != nil {
		t.Errorf("an ask rule is refused: %v", err)
	}
	if got := h.standing("w"); !strings.Contains(got, ".toold/settings.json") {
		t.Errorf("writing made a changed workspace %s", got)
	}
}

func TestRememberRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"broken":      {"{\n\"a\": }", "settings.json:2:6: it is not valid JSON"},
		"empty":       {"", "settings.json: it is empty"},
		"no object":   {"[]", "settings.json:1: settings are an object"},
		"permissions": {"{\n\n\"permissions\": []}", "settings.json:3: permissions is a list, but must be an object"},
		"list":        {"{\"permissions\": {\n\"deny\": null}}", "settings.json:2: permissions.deny is null, but must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.write("home/settings.json", row.text)
			_, err := h.store.Remember("", settings.User, permission.DenyList, "Bash(x)")
			var wrong *settings.FileError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want a FileError with %q", err, row.want)
			}
			if got := h.read("home/settings.json"); got != row.text {
				t.Errorf("the file is %q now", got)
			}
		})
	}
	h := newHouse(t)
	var never *permission.RuleError
	if _, err := h.store.Remember("", settings.User, permission.AllowList, "Write(x)"); !errors.As(err, &never) {
		t.Errorf("a rule that can never match: %v", err)
	}
	if _, err := h.store.Remember("", settings.User, permission.AllowList, "Bash(\xff)"); err == nil {
		t.Error("a rule that JSON cannot hold was remembered")
	}
	if _, err := settings.Open(settings.Sources{}).Remember("", settings.User, permission.AllowList, "Bash(x)"); err == nil {
		t.Error("a rule was remembered nowhere")
	}
	if _, err := h.store.Remember(h.path("none"), settings.Local, permission.DenyList, "Bash(x)"); err == nil {
		t.Error("a rule was remembered in a workspace that does not exist")
	}
}

// link makes a symbolic link, with the directories that it needs.
func (h *house) link(to, name string) {
	h.t.Helper()
	h.mkdir(filepath.Dir(name))
	if err := os.Symlink(to, h.path(name)); err != nil {
		h.t.Fatal(err)
	}
}

// A linked is a workspace whose settings are reached through a link.
type linked struct {
	lay  func(*house)
	file string // where the rule goes, relative to the house; empty: refused
}

// Links are followed, not replaced, and none leads out of a workspace.
func TestRememberThroughLinks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]linked{
		"a file inside": {func(h *house) {
			h.write("w/shared/s.json", "{}")
			h.link("../shared/s.json", "w/.toold/settings.json")
		}, "w/shared/s.json"},
		"a directory inside": {func(h *house) { h.mkdir("w/conf"); h.link("conf", "w/.toold") }, "w/conf/settings.json"},
		"an absolute link inside": {func(h *house) {
			h.write("w/s.json", "{}")
			h.link(h.path("w/s.json"), "w/.toold/settings.json")
		}, "w/s.json"},
		"a file outside":      {func(h *house) { h.write("s.json", "{}"); h.link("../../s.json", "w/.toold/settings.json") }, ""},
		"a directory outside": {func(h *house) { h.mkdir("conf"); h.link("../conf", "w/.toold") }, ""},
		"nowhere":             {func(h *house) { h.link("none", "w/.toold/settings.json") }, ""},
		"nowhere outside":     {func(h *house) { h.link("../none", "w/.toold") }, ""},
		"the trust file": {func(h *house) {
			h.write("home/trust.json", `{"roots": {}}`)
			h.link("../../home/trust.json", "w/.toold/settings.json")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.check(t)
		})
	}
}

func (row linked) check(t *testing.T) {
	t.Helper()
	h := newHouse(t)
	row.lay(h)
	got, err := h.store.Remember(h.path("w"), settings.Project, permission.DenyList, "Bash(x)")
	if row.file == "" {
		var wrong *settings.FileError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "out of the workspace") && !strings.Contains(err.Error(), "leads nowhere") {
			t.Errorf("wrote %s, %v; want a FileError that tells where the link leads", got, err)
		}
		for _, outside := range []string{"s.json", "conf/settings.json", "none", "none/settings.json"} {
			if data, err := os.ReadFile(h.path(outside)); err == nil && string(data) != "{}" {
				t.Errorf("%s outside of the workspace is %q now", outside, data)
			}
		}
		return
	}
	if err != nil || got != h.path(row.file) || !strings.Contains(h.read(row.file), "Bash(x)") {
		t.Errorf("wrote %s, %v; want %s", got, err, row.file)
	}
	if got := texts(h.load("w")); got != "deny Bash(x)" {
		t.Errorf("in force: %q", got)
	}
}

// What the user has linked may lie anywhere.
func TestRememberThroughTheUsersLink(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("dotfiles/s.json", "{}")
	h.link("../dotfiles/s.json", "home/settings.json")
	if got, err := h.store.Remember("", settings.User, permission.DenyList, "Bash(x)"); err != nil || got != h.path("dotfiles/s.json") {
		t.Errorf("the user's link: wrote %s, %v", got, err)
	}
	if info, err := os.Lstat(h.path("home/settings.json")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the user's link was replaced: %v, %v", info, err)
	}
}

// One file under two names of a workspace: both hashes are renewed.
func TestRememberInAFileOfTwoNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", "{}")
	if err := os.Symlink("settings.json", h.path("w/.toold/settings.local.json")); err != nil {
		t.Fatal(err)
	}
	h.trust("w")
	if _, err := h.store.Remember(h.path("w"), settings.Local, permission.AllowList, "Bash(x)"); err != nil {
		t.Fatal(err)
	}
	if got := h.standing("w"); got != "trusted" {
		t.Errorf("changed since: %s", got)
	}
}

func TestRememberKeepsTheMode(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("home/settings.json", "{}")
	if err := os.Chmod(h.path("home/settings.json"), 0o640); err != nil {
		t.Fatal(err)
	}
	h.mkdir("w")
	for level, want := range map[settings.Level]os.FileMode{settings.User: 0o640, settings.Local: 0o600, settings.Project: 0o644} {
		file, err := h.store.Remember(h.path("w"), level, permission.DenyList, "Bash(x)")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", file, info.Mode().Perm(), err, want)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*.tmp"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	}
}

// A person's editor takes no lock: what it saved between reading and writing is not lost.
func TestNothingIsWrittenOverAnEditor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, between := range map[string]func(file string){
		"saved":   func(file string) { h.write(file, "{1}") },
		"made":    func(file string) { h.write(file, "") },
		"removed": func(file string) { os.Remove(h.path(file)) },
	} {
		if name != "made" {
			h.write(name, "{0}")
		}
		err := settings.Replace(h.path(name), "{2}", func() { between(name) })
		var wrong *settings.FileError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "try again") {
			t.Errorf("%s: error %v, want a FileError that says to try again", name, err)
		}
		if data, err := os.ReadFile(h.path(name)); string(data) == "{2}" {
			t.Errorf("%s: written over, %v", name, err)
		}
	}
	if err := settings.Replace(h.path("calm"), "{2}", func() {}); err != nil || h.read("calm") != "{2}" {
		t.Errorf("with nobody else: %q, %v", h.read("calm"), err)
	}
	left, err := filepath.Glob(h.path(".*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// Many remember at once, in two processes: every rule is there, and the workspace stays trusted.
func TestRememberSideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.write("w/.toold/settings.json", "{}")
	h.trust("w")
	stores := []*settings.Store{h.open(), h.open()}
	var all sync.WaitGroup
	const rules = 24
	for i := range rules {
		all.Go(func() {
			if _, err := stores[i%2].Remember(h.path("w"), settings.Project, permission.AllowList, fmt.Sprintf("Bash(x%d)", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := h.load("w"); len(got.Rules) != rules || len(got.Warnings) > 0 {
		t.Errorf("%d rules in force, want %d; warnings %q", len(got.Rules), rules, got.WarningTexts())
	}
}
