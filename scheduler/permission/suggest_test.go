package permission_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toold/toold/scheduler/permission"
)

// suggestCases are calls with the rules that are suggested for them, in their order.
var suggestCases = map[string]string{
	"Bash npm run test -- --grep 'issue 4711'": "Bash(npm run test *)",
	"Bash npm test":                              "Bash(npm test *)",
	"Bash go test ./... && go vet ./...":         "Bash(go test *) Bash(go vet *)",
	"Bash git commit -m x":                       "Bash(git commit *)",
	"Bash git -C sub commit -m x":                "Bash(git commit *)",
	"Bash make build":                            "Bash(make build *)",
	"Bash cargo build --release":                 "Bash(cargo build *)",
	"Bash cargo run --bin x":                     "Bash(cargo run --bin x)",
	"Bash go run ./cmd/x -v":                     "Bash(go run ./cmd/x *)",
	"Bash go run ./cmd/x-3f2a91":                 "",
	"Bash npm run x-3f2a91":                      "",
	"Memory /memories/a/b.md":                    "Memory(/memories/**)",
	"Bash npm run":                               "",
	"Bash npm install":                           "Bash(npm install)",
	"Bash make":                                  "Bash(make)",
	"Bash make -C dir t":                         "",
	"Bash git push origin main":                  "Bash(git push origin main)",
	"Bash git push --force":                      "",
	"Bash git clean -fdx":                        "",
	"Bash npx jest --watch":                      "Bash(npx jest *)",
	"Bash poetry run pytest -k x":                "Bash(poetry run pytest *)",
	"Bash poetry run python x.py":                "",
	"Bash python3 -m pytest tests/":              "Bash(python3 -m pytest *)",
	"Bash ./run.sh --all":                        "Bash(./run.sh *)",
	"Bash ./a.out":                               "",
	"Bash /tmp/tmp.aB3dE/run.sh":                 "",
	"Bash mytool status":                         "Bash(mytool status)",
	"Bash mytool --token=sk-abc":                 "",
	"Bash mytool login hunter":                   "",
	"Bash mytool a/b.c":                          "",
	"Bash kubectl delete pod x":                  "",
	"Bash cd /srv/x && npm test":                 "",
	"Bash npm test > out.txt":                    "Bash(npm test *) Edit(./*.txt)",
	"Bash ./gradlew assemble":                    "Bash(./gradlew assemble *)",
	"Bash gh pr view 17":                         "Bash(gh pr view *)",
	"Bash prettier --write src/a.ts":             "Bash(prettier *)",
	"Bash prettier --write .vscode/a":            "",
	"Bash git add src && npm run test x":         "Bash(git add *) Bash(npm run test *)",
	"Bash git fetch origin":                      "Bash(git fetch origin)",
	"Bash git checkout main":                     "Bash(git checkout main)",
	"Bash git checkout -- .":                     "",
	"Bash git checkout -f main":                  "",
	"Bash git restore src":                       "",
	"Bash git reset --hard":                      "",
	"Bash git stash":                             "Bash(git stash)",
	"Bash git stash clear":                       "",
	"Bash git branch -D old":                     "",
	"Bash git rebase main":                       "Bash(git rebase main)",
	"Bash git filter-branch x":                   "",
	"Bash git rm x":                              "",
	"Bash git mv x y":                            "",
	"Bash git worktree prune":                    "",
	"Bash cp -t .git/hooks evil":                 "",
	"Bash cp -t.git/hooks evil":                  "",
	"Bash cp --target-directory=.git/hooks evil": "",
	"Bash cp a b":                                "Bash(cp a b)",
	"Bash cp src/a src/b":                        "",
	"Bash mv x .envrc":                           "",
	"Bash touch fresh":                           "Bash(touch fresh)",
	"Bash touch .npmrc":                          "",
	"Bash mkdir build":                           "Bash(mkdir build)",
	"Bash ln -s a b":                             "",
	"Bash install a b":                           "",
	"Bash chmod u+x a":                           "",
	"Bash make | tee log":                        "",
	"Bash dd if=a of=b":                          "",
	"Bash rsync a b":                             "",
	"Bash cd && ls":                              "",
	"Bash cat /srv/data/x":                       "Read(//srv/data/**)",
	"Bash bash build.sh":                         "",
	"Bash python3 -c 'x'":                        "",
	"Bash python3.12 manage.py":                  "",
	"Bash env A=1 npm test":                      "",
	"Bash sudo npm test":                         "",
	"Bash node x.js":                             "",
	"Bash npx cowsay":                            "",
	"Bash docker run -v /:/host x":               "",
	"Bash docker exec x sh":                      "",
	"Bash npm exec cowsay":                       "",
	"Bash git -c core.pager=x commit":            "",
	"Bash rm -rf build":                          "",
	"Bash curl example.com":                      "",
	"Bash /home/me/bin/deploy x":                 "",
	"Bash $TOOL x":                               "",
	"Bash find . -name x -delete":                "",
	"Bash timeout 60 npm test":                   "Bash(npm test *)",
	"Bash ma; mb; mc; md; me; mf":                "", // five would not settle it
	"Write /work/app/src/deep/x.go":              "Edit(./src/deep/**)",
	"Write /work/app/README.md":                  "Edit(./*.md)",
	"Write /work/app/.envrc":                     "",
	"Write /srv/x":                               "",
	"Read /home/me/notes/work/x.md":              "Read(~/notes/work/**)",
	"Read /home/me/x.md":                         "",
	"Read /home/me/.ssh/config":                  "",
	"Read /srv/data/x":                           "Read(//srv/data/**)",
	"Read /srv/x":                                "",
	"Read /tmp/tmp.aB3dE/x":                      "",
	"Write /work/app/run-3f2a91/x.go":            "",
	"WebFetch API.example.com.":                  "WebFetch(domain:api.example.com)",
	"mcp__github__create_issue x":                "mcp__github__create_issue",
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for call, want := range suggestCases {
		f := factsOf(t, call)
		v := permission.Decide(f, permission.Policy{})
		got := permission.Suggest(f, v, anchors)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q (%s)", call, got, want, v.Text)
		}
	}
}

// A root below /tmp is a root like others, and permission to write a file is permission to read it.
func TestSuggestInTemporaryRoot(t *testing.T) {
	t.Parallel()
	const root = "/tmp/session-3520163286/ws"
	read := permission.Access{Named: root + "/a.txt", Real: root + "/a.txt", Inside: true}
	write := read
	write.Write = true
	f := &permission.Facts{Tool: "Write", Accesses: []permission.Access{read, write}}
	got := permission.Suggest(f, permission.Decide(f, permission.Policy{}), permission.Anchors{Home: home, Roots: []string{root}})
	if strings.Join(got, " ") != "Edit(./*.txt)" {
		t.Errorf("%q is suggested", got)
	}
}

// TestSuggestionsSettle: in a list of calls as they come, whatever is suggested allows the very call, lets no program run
// what it is given, and holds nothing that is another next time.
func TestSuggestionsSettle(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	passing := regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*[0-9][0-9a-f]*[0-9]|/tmp|(?i)token|secret|hunter|sk-`)
	// With these in front of a star, or with no more than these, anything could run.
	open := regexp.MustCompile(`^Bash\((\S*/)?(sh|bash|python3?|node|ruby|perl|sudo|env|xargs|ssh|curl|rm|kubectl|docker( exec| run)?|npm( exec| run)?|npx|yarn|git|go( run| tool)?|cargo( run)?|uv( run)?|poetry( run)?|bundle( exec)?|make) \*`)
	suggested := 0
	for call := range strings.Lines(string(list)) {
		call = strings.TrimSuffix(call, "\n")
		f := factsOf(t, "Bash "+call)
		rules := permission.Suggest(f, permission.Decide(f, permission.Policy{}), anchors)
		if len(rules) == 0 {
			continue
		}
		suggested++
		var lines []string
		for _, rule := range rules {
			lines = append(lines, "allow "+rule)
			if open.MatchString(rule) || passing.MatchString(rule) {
				t.Errorf("%s: %s", call, rule)
			}
		}
		if again := permission.Decide(f, permission.Policy{Rules: compile(t, lines...)}); again.Decision != permission.Allow || len(rules) > 5 {
			t.Errorf("%s with the suggested %q: %s (%s)", call, rules, again.Decision, again.Text)
		}
	}
	if suggested < 100 {
		t.Errorf("of all calls only %d have a suggestion", suggested)
	}
}
