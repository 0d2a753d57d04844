package settings_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toold/toold/daemon/settings"
	"github.com/toold/toold/scheduler/permission"
)

// What the lines of testdata/load/sandbox*.txt do not show: which fields the values go to.
func TestSandbox(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if got := h.load("w").Sandbox; !reflect.DeepEqual(got, settings.Sandbox{}) {
		t.Errorf("without files %+v, want the zero value", got)
	}
	h.write("home/settings.json", `{"sandbox": {"enabled": false, "required": false, "autoAllowBashIfSandboxed": true,
		"allowUnsandboxedCommands": false, "excludedCommands": ["docker *"],
		"filesystem": {"allowWrite": ["/aw"], "denyWrite": ["/dw"], "denyRead": ["/dr"], "allowRead": ["/ar"]},
		"network": {"allowedDomains": ["a.x"], "deniedDomains": ["d.x"], "allowAllUnixSockets": true, "allowUnixSockets": ["/u"]},
		"credentials": {"files": ["/c"], "envVars": ["V"]}, "environment": {"keep": ["K_TOKEN"]},
		"limits": {"processes": 1, "memoryMB": 2, "fileSizeMB": 3, "openFiles": 4}},
		"env": {"K_TOKEN": "kept", "V": "withheld"}}`)
	all := h.load("w")
	got := all.Sandbox
	origin := func(line int) permission.Origin {
		return permission.Origin{File: h.path("home/settings.json"), Line: line, Base: h.path("home")}
	}
	entries := func(line int, path string) []settings.Entry {
		return []settings.Entry{{Text: path, Origin: origin(line)}}
	}
	names := func(line int, name string) []settings.Entry {
		return []settings.Entry{{Text: name, Origin: origin(line)}}
	}
	one, two, four := origin(1), origin(2), origin(4)
	for _, test := range []struct {
		what      string
		got, want any
	}{
		{"Disabled", got.Disabled, &one},
		{"Optional", got.Optional, &one},
		{"AutoAllow", got.AutoAllow, &one},
		{"NoEscape", got.NoEscape, &two},
		{"AllowWrite", got.AllowWrite, entries(3, "/aw")},
		{"DenyWrite", got.DenyWrite, entries(3, "/dw")},
		{"DenyRead", got.DenyRead, entries(3, "/dr")},
		{"AllowRead", got.AllowRead, entries(3, "/ar")},
		{"AllowedDomains", got.AllowedDomains, names(4, "a.x")},
		{"DeniedDomains", got.DeniedDomains, names(4, "d.x")},
		{"ManagedDomainsOnly", got.ManagedDomainsOnly, (*permission.Origin)(nil)},
		{"AllUnixSockets", got.AllUnixSockets, &four},
		{"UnixSockets", got.UnixSockets, entries(4, "/u")},
		{"CredentialFiles", got.CredentialFiles, entries(5, "/c")},
		{"CredentialVars", got.CredentialVars, names(5, "V")},
		{"KeepVars", got.KeepVars, names(5, "K_TOKEN")},
		{"Limits", got.Limits, settings.ProcessLimits{Processes: 1, Memory: 2 << 20, FileSize: 3 << 20, OpenFiles: 4}},
		{"Ceilings", got.Ceilings, settings.ProcessLimits{}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("%s is %+v, want %+v", test.what, test.got, test.want)
		}
	}
	if rules := got.Excluded; len(rules) != 1 || rules[0].Text != "Bash(docker *)" || rules[0].List != permission.AllowList || rules[0].Origin != two {
		t.Errorf("excluded %+v, want Bash(docker *) of line 2", rules)
	}
	if len(all.Warnings) != 1 || !strings.Contains(all.WarningTexts()[0], "env.V is kept from commands") {
		t.Errorf("warnings %q, want one that V is withheld", all.WarningTexts())
	}
	h.write("etc/settings.json", `{"sandbox": {"network": {"allowManagedDomainsOnly": true}}}`)
	if got := h.load("w").Sandbox; got.ManagedDomainsOnly == nil || len(got.AllowedDomains) > 0 {
		t.Errorf("allowed domains %+v, want none but the administrator's", got.AllowedDomains)
	}
}

func TestSandboxWithin(t *testing.T) {
	t.Parallel()
	type limits = settings.ProcessLimits
	standard := limits{Processes: 100, Memory: 1000, FileSize: 0, OpenFiles: 10}
	for _, test := range []struct {
		name           string
		said, ceilings limits
		want           limits
	}{
		{"nothing", limits{}, limits{}, standard},
		{"a file raises and lowers", limits{Processes: 500, OpenFiles: 5}, limits{}, limits{500, 1000, 0, 5}},
		{"a workspace lowers the standard", limits{}, limits{Processes: 5, Memory: 10}, limits{5, 10, 0, 10}},
		{"a workspace does not raise it", limits{}, limits{Processes: 101, Memory: 2000}, standard},
		{"a workspace lowers what a file has raised", limits{Processes: 500}, limits{Processes: 400}, limits{400, 1000, 0, 10}},
		{"a workspace bounds what is unbounded", limits{}, limits{FileSize: 7}, limits{100, 1000, 7, 10}},
	} {
		s := settings.Sandbox{Limits: test.said, Ceilings: test.ceilings}
		if got := s.Within(standard); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// FuzzSandboxOfWorkspace: nothing that a workspace's file says loosens the sandbox, though the workspace is trusted.
func FuzzSandboxOfWorkspace(f *testing.F) {
	scripts, _ := filepath.Glob("testdata/load/sandbox*.txt")
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "-- ") {
			if _, body, ok := strings.Cut(part, " --\n"); ok && strings.HasPrefix(body, "{") {
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		h := newHouse(t)
		h.write("w/.toold/settings.json", text)
		got := h.store.Load(settings.Scope{Roots: []string{h.path("w")}, Trusted: true}).Sandbox
		standard := settings.ProcessLimits{Processes: 3, Memory: 5 << 20, FileSize: 7 << 20, OpenFiles: 9}
		in := got.Within(standard)
		switch {
		case got.Disabled != nil, got.Optional != nil, got.AutoAllow != nil, got.AllUnixSockets != nil,
			len(got.Excluded)+len(got.AllowWrite)+len(got.AllowRead)+len(got.AllowedDomains)+len(got.UnixSockets)+len(got.KeepVars) > 0,
			in.Processes > 3, in.Memory > 5<<20, in.FileSize > 7<<20, in.OpenFiles > 9, got.Limits != settings.ProcessLimits{}:
			t.Errorf("%q makes it %+v", text, got)
		}
	})
}
