// The daemons of TestCostOfACall, and how they are counted: by the Go runtime, which the daemon asks when it is told to on
// its standard input, and from outside by strace.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	exptrace "golang.org/x/exp/trace"

	"github.com/toold/toold/bench/wire"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// countedMain is toold, which answers each line on its standard input with the counts of its allocations.
func countedMain() {
	runtime.MemProfileRate = 16 << 10 // fine enough for the profile of some hundred calls
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			verb, file, _ := strings.Cut(lines.Text(), " ")
			if err := obeyCounter(verb, file); err != nil {
				fmt.Println(err)
				continue
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Printf("counted %d %d\n", m.Mallocs, m.TotalAlloc)
		}
	}()
	main()
}

func obeyCounter(verb, file string) error {
	if verb == "stop" {
		trace.Stop()
	}
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	switch {
	case err != nil:
		return err
	case verb == "trace":
		return trace.Start(f)
	default:
		return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
	}
}

func lookCounted(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("counted") // testscript.Main has put it on PATH
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func goTestCompile(path string) *exec.Cmd {
	return exec.Command("go", "test", "-c", "-race=false", "-ldflags=-s -w", "-o", path, ".")
}

// A countedDaemon is a daemon that can be asked for its counts, and a stream that is attached to a session of it.
type countedDaemon struct {
	t       *testing.T
	dir     string
	asks    io.Writer
	answers *bufio.Scanner
	stream  *wire.Stream
	turn    int
}

func startCounted(t *testing.T, program string, underStrace bool) *countedDaemon {
	t.Helper()
	environ, root := home(t)
	d := &countedDaemon{t: t, dir: filepath.Dir(root)}
	put(t, filepath.Join(root, "line.txt"), "one line\n")
	args := []string{program, "serve", "--root", root}
	if underStrace {
		args = append(straceOf(t, d.kept("strace")), args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = append(environ, "HOME="+filepath.Join(d.dir, "home")), d.dir
	var log strings.Builder
	cmd.Stderr = &log
	asks, err1 := cmd.StdinPipe()
	answers, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	d.asks, d.answers = asks, bufio.NewScanner(answers)
	t.Cleanup(func() {
		out, err := self(t, context.Background(), environ, d.dir, "stop", "--now").CombinedOutput()
		if err := errors.Join(err, cmd.Wait()); err != nil {
			t.Errorf("the daemon ended with %v\n%s%s", err, out, log.String())
		}
	})
	if !d.answers.Scan() || !strings.Contains(d.answers.Text(), "listens on") {
		t.Fatalf("the daemon says %q", d.answers.Text())
	}
	d.attach(filepath.Join(d.dir, "run", "toold", "toold.sock"), root)
	return d
}

func (d *countedDaemon) attach(socket, root string) {
	d.t.Helper()
	conn, err := wire.Dial(socket)
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), hangGuard)
	d.t.Cleanup(func() { cancel(); conn.Close() })
	d.stream, err = wire.Attach(ctx, conn, &tooldv1.Attach{SessionId: "counted", Roots: []string{root}, Client: &tooldv1.ClientInfo{Name: "counted"}})
	if err == nil {
		_, err = d.stream.Recv() // Attached
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// kept returns the name of the file for what is counted, which a person may want to keep.
func (d *countedDaemon) kept(ext string) string {
	folder := os.Getenv("TOOLD_COST_KEEP")
	if folder == "" {
		return filepath.Join(d.dir, "counted."+ext)
	}
	return filepath.Join(folder, strings.ReplaceAll(filepath.Base(d.t.Name()), " ", "_")+"."+ext)
}

// ask has the daemon do something, and returns how many objects and bytes it has allocated until then.
func (d *countedDaemon) ask(what string) (objects, bytes uint64) {
	d.t.Helper()
	if _, err := io.WriteString(d.asks, what+"\n"); err != nil {
		d.t.Fatal(err)
	}
	d.answers.Scan()
	if _, err := fmt.Sscanf(d.answers.Text(), "counted %d %d", &objects, &bytes); err != nil {
		d.t.Fatalf("%s: %q: %v", what, d.answers.Text(), err)
	}
	return objects, bytes
}

// warm makes calls until nothing changes any more for those that follow.
func (d *countedDaemon) warm(tool, input string) {
	for begun := time.Now(); time.Since(begun) < settled; {
		d.calls(warming, tool, input)
	}
}

// calls makes n calls of one turn, one after the other. $ROOT in the input stands for the session's root.
func (d *countedDaemon) calls(n int, tool, input string) {
	d.t.Helper()
	input = strings.ReplaceAll(input, "$ROOT", filepath.Join(d.dir, "ws"))
	d.turn++
	turn := strconv.Itoa(d.turn)
	for call := range n {
		if err := d.stream.Use(turn, turn+"."+strconv.Itoa(call), tool, input); err != nil {
			d.t.Fatal(err)
		}
		for {
			event, err := d.stream.Recv()
			if err != nil {
				d.t.Fatal(err)
			}
			result := event.GetToolResult()
			if result == nil {
				continue
			}
			if result.GetOutcome() != tooldv1.Outcome_OUTCOME_OK {
				d.t.Fatalf("%s ended as %v", tool, result)
			}
			break
		}
	}
}

// tracedCosts returns how often a goroutine began to run, and how often records were read from the database, for each of
// n calls in a trace.
func tracedCosts(t *testing.T, file string, n float64) (switches, reads float64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := exptrace.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		event, err := r.ReadEvent()
		switch {
		case errors.Is(err, io.EOF):
			return switches / n, reads / n
		case err != nil:
			t.Fatal(err)
		case event.Kind() == exptrace.EventStateTransition:
			change := event.StateTransition()
			if change.Resource.Kind != exptrace.ResourceGoroutine {
				continue
			}
			if from, to := change.Goroutine(); from == exptrace.GoRunnable && to == exptrace.GoRunning {
				switches++
			}
		case event.Kind() == exptrace.EventRegionBegin && event.Region().Type == "journal.read":
			reads++
		}
	}
}

// fileCalls are the system calls that take a path, and that which lists a folder.
const fileCalls = "stat,lstat,newfstatat,statx,open,openat,openat2,readlink,readlinkat,access,faccessat,faccessat2,getdents,getdents64"

func straceOf(t *testing.T, file string) []string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		skip(t, "strace is not installed")
	}
	return []string{path, "-f", "-qq", "-y", "-xx", "-s", "24", "-o", file, "-e", "trace=" + fileCalls + ",write,pwrite64,fsync,fdatasync,futex"}
}

// straceLine is a system call as it begins: its name, the path of its descriptor and its second argument if that is a
// string, with dots behind it if it is not all of it.
var straceLine = regexp.MustCompile(`^\d+\s+(\w+)\((?:\d+<([^>]*)>(?:, "([^"]*)"(\.\.\.)?)?)?`)

// addStraced adds the system calls between the two marks in a file of strace's, for each of n calls.
func (c *costs) addStraced(t *testing.T, file string, n float64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	marks, journal := 0, regexp.MustCompile(`journal[^/]*$`)
	for line := range strings.Lines(string(text)) {
		found := straceLine.FindStringSubmatch(line)
		if found == nil { // the end of a call, or of a process
			continue
		}
		name, path, written := found[1], unhex(found[2]), unhex(found[3])
		if name == "write" && strings.HasPrefix(written, "counted ") {
			marks++
		}
		if marks != 1 {
			continue
		}
		switch {
		case slices.Contains(strings.Split(fileCalls, ","), name):
			c.files += 1 / n
		case name == "futex":
			c.futexes += 1 / n
		case !journal.MatchString(path):
		case name == "fsync" || name == "fdatasync":
			c.syncs += 1 / n
		case name == "pwrite64":
			c.writes += 1 / n
			if found[4] == "" && endsTransaction(path, written) {
				c.transactions += 1 / n
			}
		}
	}
	if marks != 2 {
		t.Fatalf("%d marks in the lines of strace", marks)
	}
}

// endsTransaction reports whether a write to the journal is the header of a frame of SQLite's write-ahead log that ends a
// transaction: bytes 4 to 8 of it are the size of the database, and are zero in every other.
func endsTransaction(path, written string) bool {
	return strings.HasSuffix(path, "-wal") && len(written) == 24 && written[4:8] != "\x00\x00\x00\x00"
}

// unhex decodes what strace -xx prints.
func unhex(text string) string {
	var decoded strings.Builder
	for part := range strings.SplitSeq(text, `\x`) {
		if b, err := strconv.ParseUint(part, 16, 8); err == nil {
			decoded.WriteByte(byte(b))
		}
	}
	return decoded.String()
}
