package main

// What is asked of the world that a call sees, and what becomes of each demand in each tier: the table in docs/security.md, and the
// tests that it names.

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/cmd/toold/internal/golden"
)

// A demand is a row of the table.
type demand struct {
	what                 string
	full, fast, fallback held
}

// held is what holds in a tier, and the tests that show it.
type held struct {
	text  string
	tests []string
}

func by(text string, tests ...string) held { return held{text, tests} }

// bareTests are those that try the fallback without the program that takes namespaces away, or for which tiers do not matter: no
// process is started.
var bareTests = []string{"TestDoors", "TestNamedFilesAreFound", "TestWalkAround"}

// demands are those of the sections in which they are listed.
var demands = []struct {
	section string
	rows    []demand
}{
	{"The same command means the same", []demand{
		{
			"a script prints the same, ends the same and leaves the same files as in plain bash, whatever stands beside it",
			by("yes", "TestOneWorld", "TestOneWorldAsNobody"), by("yes", "TestOneWorld"), by("yes", "TestOneWorldWithoutNamespaces"),
		},
		{
			"every call has the session's variables, without secrets, and what was removed is named once",
			by("yes", "TestRemovedVariables"), by("yes", "TestTierOfReads"),
			by("yes; calls that may write have the variables of caches besides", "TestEnvironmentWithoutNamespaces", "TestCachesWithoutNamespaces"),
		},
		{
			"a variable that makes a program run or write something makes the call ask",
			by("yes", "TestVariablesThatSteer"), by("such a call is not for this tier", "TestVariablesThatSteer"), by("yes", "TestEnvironmentWithoutNamespaces"),
		},
		{
			"values and files are judged at the call's turn, and the number of its batch comes from the text",
			by("yes", "TestAloneAtTheTurn"), by("yes", "TestValuesAtTheTurn", "TestTierOfReads"), by("yes", "TestEnvironmentWithoutNamespaces"),
		},
		{
			"a word leads where PATH puts it; what calls can write there asks, and directories of PATH below home are protected",
			by("yes", "TestOnePath", "TestProgramOfTheWorkspace", "TestPathBelowHomeIsProtected"),
			by("programs below home get full", "TestReadsInAHome", "TestHarmlessReads"),
			by("yes; programs below home ask", "TestEnvironmentWithoutNamespaces", "TestHomeWithoutNamespaces"),
		},
		{
			"what a program reads as the user's own configuration is readable, and credentials are not",
			by("yes", "TestReadsInAHome", "TestHiddenInAHome"), by("yes, for the programs that read it", "TestReadsInAHome", "TestHiddenInAHome"),
			by("yes", "TestHomeWithoutNamespaces"),
		},
		{
			"git does without a configuration that a rule hides",
			by("yes", "TestHiddenConfiguration"), by("such a call gets full", "TestHiddenConfiguration"),
			by("no: Landlock makes nothing absent. Git names the file, some of its commands fail, and the call asks", "TestHomeWithoutNamespaces"),
		},
		{
			"`/tmp` and `/var/tmp` are the session's own, the same for commands and file tools",
			by("yes", "TestTemporary", "TestTemporaryKept", "TestTemporaryLinks", "TestTemporaryAsked"), by("what names them gets full", "TestTierOfReads"),
			by("by TMPDIR and the real path; a command that says `/tmp/...` is told that path", "TestTemporaryWithoutNamespaces"),
		},
		{
			"of the machine's `/tmp` what a call names is shown read-only, and nothing beside it",
			by("yes", "TestTemporary", "TestDoors"), by("yes", "TestDoors"), by("yes", "TestMachineTemporaryWithoutNamespaces", "TestDoors"),
		},
		{
			"a port on which the session listens opens in the user's browser after one question, and ends with its server",
			by("yes (and `always`, `never`)", "TestPortInBrowser", "TestPortRefused", "TestPortSettings", "TestPortEnds", "TestPortsOfDeadDaemon", "TestForegroundPorts", "TestPortAskedLater"),
			by("no sockets: there is no port", "TestDoors"), by("no listening: there is no port", "TestSystemWithoutNamespaces"),
		},
		{
			"nothing of the machine, of another session or of another program is reached or taken over by it",
			by("yes", "TestPortsApart", "TestPortTaken", "TestDoors"), by("no sockets", "TestDoors"), by("no listening", "TestSystemWithoutNamespaces"),
		},
		{
			"`sharedTmp` of the user's file opens the machine's own instead",
			by("yes", "TestTemporaryShared"), by("yes", "TestTemporaryShared"), by("yes", "TestTemporarySharedWithoutNamespaces"),
		},
	}},
	{"What ordinary programs may do", []demand{
		{
			"git reads the user's configuration, linked worktrees and submodules; aliases count as what they stand for",
			by("yes", "TestGitAsConfigured", "TestOrdinaryWork"), by("yes; a git directory outside the roots gets full", "TestGitAsConfigured", "TestTierOfReads"),
			by("yes", "TestEnvironmentWithoutNamespaces", "TestOrdinaryWorkWithoutNamespaces"),
		},
		{
			"harmless reads do not ask (`go list`, `npm ls`, `--version`, loops, `/proc/cpuinfo`)",
			by("yes", "TestHarmlessReads", "TestReadsInAHome"), by("yes; programs that may do more on their way get full", "TestHarmlessReads", "TestTierOfReads"),
			by("programs that may do more on their way ask; the others do not", "TestEnvironmentWithoutNamespaces", "TestHomeWithoutNamespaces"),
		},
		{
			"a host that is refused ends the call soon, with the setting, its value and its file",
			by("yes, at the tenth refusal", "TestRefusedTenTimes", "TestPackageManagersGiveUp"), by("no sockets: nothing is asked for", "TestDoors"),
			by("no sockets: a look-up fails at once, and nothing counts how often", "TestSystemWithoutNamespaces"),
		},
		{
			"a host that nothing names is asked about while the connection waits, and what one call was allowed is not another's",
			by("yes", "TestHostAnswers", "TestHostOfAnotherCall", "TestInstallFromAllowedHost", "TestClientsOfOneProxy"),
			by("no sockets: nothing is asked for", "TestDoors"),
			by("no: nothing shows which call a connection belongs to, so the host is refused", "TestSystemWithoutNamespaces"),
		},
		{
			"processes connect to what their own session listens on",
			by("yes, over the loopback and Unix sockets", "TestOrdinaryWork", "TestServerLeftRunning"), by("no sockets", "TestDoors"),
			by("no sockets but pairs", "TestSystemWithoutNamespaces", "TestDoors"),
		},
		{
			"sockets of others stay out of reach: another session's, the daemon's, the system's, the host's loopback",
			by("yes", "TestDoors", "TestOrdinaryWork"), by("yes", "TestDoors"), by("yes", "TestDoors"),
		},
		{
			"processes of a call trace each other, and no others",
			by("yes", "TestOrdinaryWork", "TestDoors"), by("no tracing", "TestDoors"), by("no tracing", "TestDoors"),
		},
		{
			"the user's caches are warm, and do not change",
			by("yes, also where the client's variables say below home", "TestWarmCaches", "TestFirstBuild", "TestCachesOfTheClient", "TestDoors"),
			by("read where a path is named", "TestTierOfReads", "TestDoors"),
			by("read; calls write to folders of their own, by variables, which are cold", "TestCachesWithoutNamespaces", "TestDoors"),
		},
		{
			"what a script has put into the background goes on as a task, at most 8",
			by("yes", "TestServerLeftRunning", "TestLeftRunningEnds", "TestLeftRunningNotKept", "TestAtMostEightLeftRunning"),
			by("such a call gets full", "TestTierOfReads"), by("yes, without servers", "TestLeftRunningWithoutNamespaces"),
		},
		{
			"what goes on keeps the policy of its call, and a later call gains nothing by it but what it passes on by a socket",
			by("yes", "TestDoors"), by("yes, and there are no sockets", "TestDoors"), by("yes, and there are no sockets", "TestDoors"),
		},
		{
			"a file that a command has made counts as read",
			by("yes, named or not", "TestMadeCountsAsRead", "TestMadeUnnamedCountsAsRead"), by("nothing is made", "TestDoors"),
			by("where the command names it", "TestMadeCountsAsReadWithoutNamespaces"),
		},
		{
			"lines of stdout and stderr do not tear each other",
			by("yes", "TestWholeLines"), by("yes", "TestOneWorld"), by("yes", "TestLeftRunningWithoutNamespaces"),
		},
		{
			"Glob finds hidden and ignored files that the pattern names",
			by("no process is started", "TestNamedFilesAreFound"), by("no process is started", "TestNamedFilesAreFound"), by("no process is started", "TestNamedFilesAreFound"),
		},
		{
			"`df`, `ss`, `/proc/self`, `/dev/fd` and `/dev/shm` work",
			by("yes, the sandbox's own", "TestOrdinaryWork", "TestTierOfReads"), by("`/dev/fd` does; the others get full", "TestTierOfReads"),
			by("the machine's own, but for `/dev/shm`, which cannot be written; `ss` says less", "TestSystemWithoutNamespaces"),
		},
	}},
	{"What an answer grants", []demand{
		{
			"a path outside the roots that was named and permitted is writable, a new file in home too",
			by("yes", "TestAnswerGrants", "TestAnswerGrantsAsNobody"), by("nothing is written; what was named is read", "TestTierOfReads", "TestDoors"),
			by("yes", "TestAnswerGrantsWithoutNamespaces"),
		},
		{
			"nothing else is opened by it, and nothing for a later call",
			by("yes", "TestGrantsNoMore", "TestNoGrantOutside", "TestRememberedGrant", "TestDoors"), by("yes", "TestDoors"),
			by("yes; what is protected in a directory that was opened is put back when the call has ended", "TestGrantsNoMoreWithoutNamespaces", "TestDoors"),
		},
		{
			"a rule lets a command run, and opens no path, credential or host that it does not name",
			by("yes", "TestReach", "TestReachIsAskedFor", "TestNoReach"), by("yes", "TestReach"), by("yes", "TestGrantsNoMoreWithoutNamespaces"),
		},
		{
			"a denial's advice, followed to the letter, lets the call run",
			by("yes", "TestAdviceWorks", "TestAdviceWorksAsNobody"), by("yes", "TestAdviceWorks"), by("yes", "TestGrantsNoMoreWithoutNamespaces"),
		},
		{
			"a script that does not parse is invalid, with line and column",
			by("nothing is run", "TestSyntaxError"), by("nothing is run", "TestSyntaxError"), by("nothing is run", "TestGrantsNoMoreWithoutNamespaces"),
		},
		{
			"a client that may answer does so from anywhere, and what a call has started does not",
			by("yes", "TestAnswer", "TestAttachAnswersForMCP", "TestCallsAnswerNothing", "TestCallsTrustNothing"), by("yes; no sockets", "TestDoors"),
			by("yes", "TestCallsTrustNothingWithoutNamespaces"),
		},
	}},
	{"Git", []demand{
		{
			"what exists and makes git run programs is read-only while a call runs, by whatever setting it is named",
			by("yes, in the root's own repositories", "TestGitBound", "TestGitDoors"), by("nothing is written", "TestDoors"),
			by("no: Landlock knows no exceptions in a tree that may be written. It is moved aside like what appears", "TestGitDoorsWithoutNamespaces"),
		},
		{
			"what appears while a call runs is moved aside before the call ends, and reported at once",
			by("yes, by what the call itself does", "TestGitMeanwhile"), by("nothing is written", "TestDoors"),
			by("within seconds, by comparing", "TestGitMeanwhileWithoutNamespaces"),
		},
		{
			"the rest is moved aside when the call has ended: pointers, commands in the list of a rebase",
			by("yes, but for what the command names", "TestGitAfterwards", "TestGitRebaseNamed", "TestGitDoors"), by("nothing is written", "TestDoors"),
			by("yes", "TestGitAfterwardsWithoutNamespaces", "TestGitDoorsWithoutNamespaces"),
		},
		{
			"of a file of settings only those go that make git run programs, and the command that the report names brings everything back",
			by("yes", "TestGitMeanwhile", "TestGitAfterwards", "TestWithout"), by("nothing is written", "TestDoors"),
			by("yes", "TestGitMeanwhileWithoutNamespaces", "TestGitAfterwardsWithoutNamespaces"),
		},
		{
			"everyday git works without a question of its own, commands that change settings ask once, and neither is disturbed",
			by("yes", "TestEverydayGit", "TestGitMeanwhileLeavesAlone"), by("git that only reads does not ask", "TestGitAsConfigured"),
			by("yes", "TestGitMeanwhileLeavesAloneWithoutNamespaces"),
		},
		{
			"what the user makes meanwhile stays",
			by("until the call ends, unless the call changes the same file; settings that run nothing stay", "TestGitMeanwhileLeavesAlone"), by("yes: nothing is moved", "TestDoors"),
			by("only settings that run nothing", "TestGitMeanwhileLeavesAloneWithoutNamespaces"),
		},
	}},
	{"What a result says, and what stays guarded", []demand{
		{
			"with `merged_output` the order of stdout and stderr is exact, and the memory of a command is its own",
			by("yes", "TestMergedOutput"), by("yes", "TestMergedOutput"), by("yes", "TestMergedOutputWithoutNamespaces"),
		},
		{
			"an output that was too long for its result can be read by later sessions of the same user and root",
			by("yes", "TestSpilledOutputIsReadable", "TestSpilledOutputIsReadableAsNobody"), by("yes", "TestSpilledOutputIsReadable"),
			by("yes", "TestSpilledOutputIsReadableWithoutNamespaces"),
		},
		{
			"a PDF page without text comes as an image; the document, or each page, in the form that is asked for",
			by("a reader needs no more than fast", "TestScannedPDF"), by("yes", "TestScannedPDF"), by("yes", "TestScannedPDFWithoutNamespaces"),
		},
		{
			"what a program leaves where editors, agents and build tools would obey it is moved aside",
			by("yes", "TestProtectedNames"), by("nothing is written", "TestDoors"), by("yes", "TestProtectedNamesWithoutNamespaces"),
		},
		{
			"a deny rule sees a command through wrappers, shells, containers and the texts of other programs",
			by("decided before the start", "TestWalkAround"), by("decided before the start", "TestWalkAround"), by("decided before the start", "TestWalkAround"),
		},
	}},
}

// TestDemands: docs/security.md shows the table, every test that it names is there, and those of the fallback run there.
func TestDemands(t *testing.T) {
	const begin, end = "<!-- demands -->\n", "<!-- end of demands -->"
	path := filepath.FromSlash("../../docs/security.md")
	before, rest, ok := strings.Cut(content(t, path), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	if want := demandsTable(); golden.Updates() {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if shown != want {
		t.Errorf("%s does not show the demands: run the test with -update\n%s", path, want)
	}
	tests := testsByName(t)
	for _, s := range demands {
		for _, d := range s.rows {
			for tier, h := range map[string]held{"full": d.full, "fast": d.fast, "fallback": d.fallback} {
				if h.text == "" || len(h.tests) == 0 {
					t.Errorf("%s: nothing is said, or no test is named, of %s", d.what, tier)
				}
				for _, name := range h.tests {
					if tests[name] == "" {
						t.Errorf("%s: there is no %s", d.what, name)
					}
				}
			}
			there := func(name string) bool {
				return slices.Contains(bareTests, name) || strings.Contains(tests[name], "withoutNamespaces(t)")
			}
			if !slices.ContainsFunc(d.fallback.tests, there) {
				t.Errorf("%s: none of %q runs without namespaces", d.what, d.fallback.tests)
			}
		}
	}
}

func demandsTable() string {
	var b strings.Builder
	cell := func(h held) string { return fmt.Sprintf("%s (`%s`)", h.text, strings.Join(h.tests, "`, `")) }
	for _, s := range demands {
		fmt.Fprintf(&b, "\n**%s**\n\n| demand | full | fast (only reads) | fallback |\n|---|---|---|---|\n", s.section)
		for _, d := range s.rows {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.what, cell(d.full), cell(d.fast), cell(d.fallback))
		}
	}
	return b.String() + "\n"
}

var aTest = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{`)

// testsByName returns the text of every test of the tree.
func testsByName(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, dir := range []string{".", "../../daemon", "../../scheduler", "../../tools"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text := content(t, path)
			for _, at := range aTest.FindAllStringSubmatchIndex(text, -1) {
				body, _, _ := strings.Cut(text[at[0]:], "\n}\n")
				body, _, _ = strings.Cut(body, "\nfunc ")
				found[text[at[2]:at[3]]] = body
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
