package turn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	toold "github.com/toold/toold/clients/go"
	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/connect"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// JoinTerminal points an Attach at the session of its roots and this process's terminal, and reports whether there is
// one. With aside, it tells the user if there is none. The session outlives the turn, so what the turn does not choose is
// set back to what a new session has.
func JoinTerminal(console *cli.Console, a *tooldv1.Attach, aside bool) bool {
	if len(a.GetOptions().GetTools().GetNames()) > 0 { // a session with other tools than the terminal's
		return false
	}
	name := terminalSession(console, a.GetRoots())
	if name == "" {
		if aside {
			console.Say("no terminal: the turn runs in a session of its own, which ends with it (--session NAME uses one that stays)")
		}
		return false
	}
	a.SessionId, a.Yield = name, true
	o := a.GetOptions()
	o.OnDisconnect = tooldv1.OnDisconnect_ON_DISCONNECT_CANCEL.Enum()
	if o.PermissionMode == nil {
		o.PermissionMode = tooldv1.PermissionMode_PERMISSION_MODE_UNSPECIFIED.Enum()
	}
	o.SettingsJson, o.Trusted = proto.String(o.GetSettingsJson()), proto.Bool(o.GetTrusted())
	return true
}

// mostTerminalSessions is how many sessions of one directory and terminal may have been closed. Ours: a daemon closes one
// that is idle for a day, and keeps its records for a while.
const mostTerminalSessions = 100

// RunIn runs the turn. In the terminal's session it moves on to the next of that name if one was closed, and
// to an anonymous one if another turn runs there.
func (t *Turn) RunIn(ctx context.Context, inTerminal bool) error {
	name := t.Attach.GetSessionId()
	for n := 2; ; n++ {
		err := t.Run(ctx)
		if err == nil || !inTerminal || t.Session != nil {
			return err
		}
		switch reason := toold.Reason(err); {
		case reason == "session_closed" && n <= mostTerminalSessions:
			t.Attach.SessionId = fmt.Sprintf("%s-%d", name, n)
		case reason == "attached":
			t.Console.Say("the session of this terminal is in use: the turn runs in one of its own, which ends with it")
			t.Attach.SessionId, t.Attach.Yield, inTerminal = "", false, false
			t.Prompter.Passing = true
		default:
			return err
		}
	}
}

// unfit matches what a session's name cannot have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// terminalSession returns the name of the session of these roots and the terminal on which this process was started;
// empty: there is none. A process that leads the terminal's session itself has nothing that comes after it there.
func terminalSession(console *cli.Console, roots []string) string {
	if !terminal.Open(console.Stdin).Terminal && !terminal.Open(console.Stdout).Terminal && !terminal.Open(console.Stderr).Terminal {
		return ""
	}
	leader, err := unix.Getsid(0)
	if err != nil || leader == os.Getpid() {
		return ""
	}
	started, err := connect.StartOf(leader)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d\x00%s\x00%s", leader, started, strings.Join(roots, "\x00"))))
	base := strings.Trim(unfit.ReplaceAllString(filepath.Base(roots[0]), "-"), "-.")
	return fmt.Sprintf("tty-%.24s-%s", base, hex.EncodeToString(sum[:6]))
}
