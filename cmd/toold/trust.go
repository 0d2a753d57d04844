// Trusting a workspace: the settings that count from then on are shown, and the trust is stored. The settings package
// decides which settings of an untrusted workspace count.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/settings"
)

func (s *app) trustCommand() *cobra.Command {
	var files settingsFiles
	var forget, show bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a workspace's own settings count",
		Long: "Remembers that the settings files of the workspace DIR (default: the working directory) are trusted as they are now,\n" +
			"and prints what counts because of that. Until then such files can deny and ask, but allow nothing and run nothing.\n" +
			"Each change of the files, also one that a pull brings, takes the trust away.\n\n" +
			"Only DIR itself is looked at: no folder above or below it.",
		Example:           "  toold trust --show\n  toold trust ~/src/project\n  toold trust --forget ~/src/project",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: cli.Action(func(_ context.Context, args []string) error {
			if forget {
				return s.distrust(files, append(args, ".")[0])
			}
			store, root, err := files.here(args)
			if err != nil {
				return err
			}
			return s.trust(store, root, show)
		}),
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "trust it no more")
	cmd.Flags().BoolVar(&show, "show", false, "only print what would count, and trust nothing")
	cmd.MarkFlagsMutuallyExclusive("forget", "show")
	files.add(cmd)
	return cmd
}

// distrust forgets a workspace, which may be gone.
func (s *app) distrust(files settingsFiles, dir string) error {
	root, err := filepath.Abs(dir)
	if err := errors.Join(err, files.absolute()); err != nil {
		return err
	}
	if err := files.store().Distrust(root); err != nil {
		return err
	}
	return s.tellTrust(trustJSON{Root: root}, " is not trusted")
}

// A trustJSON is what became of a workspace, for programs.
type trustJSON struct {
	Root     string        `json:"root"`
	Trusted  bool          `json:"trusted"`
	Files    []string      `json:"files,omitempty"`
	Settings []settingJSON `json:"settings,omitempty"`
}

// trust shows what counts of the workspace's files once they are trusted and, unless that is all that is asked for, trusts them.
// What was not shown is not trusted.
func (s *app) trust(store *settings.Store, root string, showOnly bool) error {
	shown := store.Load(settings.Scope{Roots: []string{root}, Trusted: true})
	gained := gain(shown, root)
	trust, err := store.Trusted(root)
	if err != nil {
		return err
	}
	if !s.JSON {
		tellGain(s.Stdout, root, gained, trust)
	}
	now := trustJSON{Root: root, Trusted: trust.Trusted, Settings: settingsJSON(gained)}
	words := trustWords(trust)
	if !showOnly {
		if now.Files, err = store.Trust(root, shown); err != nil {
			return err
		}
		now.Trusted, words = true, trustedWords(now.Files)
	}
	return s.tellTrust(now, words)
}

// tellTrust prints what became of a workspace.
func (s *app) tellTrust(now trustJSON, words string) error {
	return s.Show(now, terminal.VisibleLine(now.Root+words)+"\n")
}

// gain is what the workspace's own files set that does not count unless they are trusted.
func gain(trusted *settings.Settings, root string) []settings.Line {
	var gained []settings.Line
	for _, l := range trusted.Lines() {
		dir := filepath.Dir(l.Origin.File)
		own := dir == filepath.Join(root, ".toold") || dir == filepath.Join(root, ".claude") || l.Origin.File == filepath.Join(root, ".mcp.json")
		if own && l.Key != "permissions.deny" && l.Key != "permissions.ask" {
			gained = append(gained, l)
		}
	}
	return gained
}

func tellGain(out io.Writer, root string, gained []settings.Line, trust settings.Trust) {
	if len(gained) == 0 {
		fmt.Fprintf(out, "The settings of %s hold nothing that needs trust.\n", terminal.VisibleLine(root))
		return
	}
	why := "need trust to count"
	if trust.Trusted {
		why = "count because it is trusted"
	}
	fmt.Fprintf(out, "Of the settings of %s these %s:\n", terminal.VisibleLine(root), why)
	hooks := false
	for _, l := range gained {
		hooks = hooks || strings.HasPrefix(l.Key, "hooks.")
		fmt.Fprintf(out, "  %s  %s  %s\n", terminal.VisibleLine(l.Key), terminal.VisibleLine(l.Value), terminal.VisibleLine(l.Origin.String()))
	}
	if hooks {
		fmt.Fprintln(out, "Of a hook the line above is trusted, not the program or script that it names: that can change, and runs all the same.")
	}
}

// trustWords returns what stands behind the name of the root.
func trustWords(trust settings.Trust) string {
	switch {
	case trust.Trusted:
		return " is trusted."
	case len(trust.Changed) > 0:
		return " was trusted, but these files have changed since: " + strings.Join(trust.Changed, ", ") + "."
	default:
		return " is not trusted."
	}
}

func trustedWords(files []string) string {
	if len(files) == 0 {
		return " is trusted. It has no settings files; one that appears takes the trust away."
	}
	return " is trusted, with these files as they are now: " + strings.Join(files, ", ") + "."
}
