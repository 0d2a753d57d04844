package main

// Programs that ask for hosts that they may not reach: they give up soon, or the call is ended.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// refusedOften is a program that does not give up.
const refusedOften = `trap '' TERM
echo begins
while :; do curl -sS https://host.example/x; sleep 0.01; done
`

// answerless is what a client attaches with that lets commands run and answers no questions.
func answerless(root string) *tooldv1.Attach {
	return &tooldv1.Attach{Roots: []string{root}, Options: &tooldv1.Options{SettingsJson: proto.String(`{"permissions": {"allow": ["Bash"]}}`)}}
}

// TestRefusedTenTimes: where nobody can be asked, a host that is refused ten times ends the call, which names the host, the setting and the value; fewer do
// not, and a background task goes on.
func TestRefusedTenTimes(t *testing.T) {
	h := ordinary(t)
	info, err := h.link.Daemon.GetInfo(t.Context(), &tooldv1.GetInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.GetSandbox() != tooldv1.SandboxTier_SANDBOX_TIER_FULL {
		skip(t, "the full tier is needed")
	}
	root := h.room(t, "w", map[string]string{
		"loop.sh": refusedOften, "nine.sh": "for i in 1 2 3 4 5 6 7 8 9; do curl -sS https://host.example/x; done; echo ends",
		"two.sh": "for i in 1 2 3 4 5 6; do curl -sS https://a.example/; curl -sS http://b.example/; done; echo ends",
	})
	c := h.attach(t, answerless(root))
	r := c.run("1", "sh loop.sh")
	expect(t, textIn(r), outcome(r), "ERROR host_refused")
	holds(t, "the result", textIn(r), "begins", "host.example", "10 times", `"allowedDomains":["host.example"]}}} to `+h.user())
	for _, script := range []string{"nine.sh", "two.sh"} {
		r = c.run(script, "sh "+script)
		expect(t, textIn(r), outcome(r), "OK")
		holds(t, script, textIn(r), "ends")
	}
	c.use("4", "Bash", `{"command": "sh nine.sh; sh nine.sh; touch done", "run_in_background": true}`)
	c.finish("4", yes)
	holds(t, "the task", c.awaitNotice("task_ended"), "exit code 0")
}

// TestPackageManagersGiveUp: without hosts that they may reach, package managers end by themselves or are ended.
func TestPackageManagersGiveUp(t *testing.T) {
	rustup := os.Getenv("RUSTUP_HOME") // where cargo finds itself
	if home, err := os.UserHomeDir(); err == nil && rustup == "" {
		rustup = filepath.Join(home, ".rustup")
	}
	h := ordinary(t)
	var dependencies, locked []string
	for i := range 40 {
		dependencies = append(dependencies, fmt.Sprintf(`"package-%d": "1.0.0"`, i))
		locked = append(locked, fmt.Sprintf(`"node_modules/package-%d": {"version": "1.0.0", "resolved": "https://registry.npmjs.org/package-%[1]d/-/package-%[1]d-1.0.0.tgz"}`, i))
	}
	lock := `{"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": {"name": "x", "version": "1.0.0", "dependencies": {` +
		strings.Join(dependencies, ",") + `}},` + strings.Join(locked, ",") + `}}`
	for name, x := range map[string]struct{ command, host string }{
		"npm":    {"npm install --no-audit --no-fund", "registry.npmjs.org"},
		"npm ci": {"cp lock package-lock.json && npm ci --no-audit --no-fund", "registry.npmjs.org"},
		"pip":    {"pip download --no-cache-dir nosuchpackage", "pypi.org"},
		"cargo":  {"mkdir -p src; touch src/lib.rs; CARGO_HOME=$PWD/own RUSTUP_HOME=" + rustup + " cargo fetch", "index.crates.io"},
		"git":    {"git ls-remote $(cat url)", "github.com"},
		"wget":   {"wget -q -i url", "github.com"},
		"curl":   {"curl -sS $(cat url)", "github.com"},
	} {
		t.Run(name, func(t *testing.T) {
			program, _, _ := strings.Cut(name, " ")
			if exec.Command(program, "--version").Run() != nil {
				skip(t, "install "+program)
			}
			c := h.attach(t, answerless(h.room(t, strings.ReplaceAll(name, " ", "-"), map[string]string{
				"package.json": `{"name": "x", "version": "1.0.0", "dependencies": {` + strings.Join(dependencies, ",") + `}}`,
				"Cargo.toml":   "[package]\nname = \"x\"\nversion = \"0.1.0\"\n[dependencies]\nserde = \"1\"\n", "url": "https://github.com/a/b\n", "lock": lock,
			})))
			c.use("1", "Bash", fmt.Sprintf(`{"command": %q, "timeout": 60000}`, x.command))
			r := c.finish("1", yes)
			if r.GetOutcome() != tooldv1.Outcome_OUTCOME_ERROR {
				t.Errorf("ends %s:\n%s", outcome(r), textIn(r))
			}
			t.Logf("%s took %s", outcome(r), r.GetUsage().GetRan().AsDuration())
			holds(t, "the result", textIn(r), x.host)
		})
	}
}
