// Trusting a workspace: the settings that count from then on are shown, and the trust is stored. The settings package
// decides which settings of an untrusted workspace count.

package main

import (
	"context"
	"encoding/json"
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
			store, err := files.open()
			if err != nil {
				return err
			}
			if forget {
				return s.distrust(store, append(args, ".")[0])
			}
			root, err := workspaceOf(args)
			if err != nil {
				return err
			}
			if show {
				return s.showTrust(store, root)
			}
			return s.trust(store, root)
		}),
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "trust it no more")
	cmd.Flags().BoolVar(&show, "show", false, "only print what would count, and trust nothing")
	cmd.MarkFlagsMutuallyExclusive("forget", "show")
	files.add(cmd)
	return cmd
}

// distrust forgets a workspace, which may be gone.
func (s *app) distrust(store *settings.Store, dir string) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := store.Distrust(root); err != nil {
		return err
	}
	if s.JSON {
		return json.NewEncoder(s.Stdout).Encode(trustJSON{Root: root})
	}
	_, err = fmt.Fprintf(s.Stdout, "%s is not trusted\n", terminal.VisibleLine(root))
	return err
}

// A trustJSON is what became of a workspace, for programs.
type trustJSON struct {
	Root     string        `json:"root"`
	Trusted  bool          `json:"trusted"`
	Files    []string      `json:"files,omitempty"`
	Settings []settingJSON `json:"settings,omitempty"`
}

// showTrust returns what would count of the workspace's files if they were trusted.
func (s *app) showTrust(store *settings.Store, root string) error {
	gained := gain(store.Load(settings.Scope{Roots: []string{root}, Trusted: true}), root)
	trust, err := store.Trusted(root)
	if err != nil {
		return err
	}
	if s.JSON {
		return json.NewEncoder(s.Stdout).Encode(trustJSON{Root: root, Trusted: trust.Trusted, Settings: settingsJSON(gained)})
	}
	tellGain(s.Stdout, root, gained, trust)
	_, err = fmt.Fprintln(s.Stdout, trustWords(root, trust))
	return err
}

// trust shows what counts of the workspace's files from now on, and trusts them. What was not shown is not trusted.
func (s *app) trust(store *settings.Store, root string) error {
	shown := store.Load(settings.Scope{Roots: []string{root}, Trusted: true})
	gained := gain(shown, root)
	before, err := store.Trusted(root)
	if err != nil {
		return err
	}
	if !s.JSON {
		tellGain(s.Stdout, root, gained, before)
	}
	files, err := store.Trust(root, shown)
	if err != nil {
		return err
	}
	if s.JSON {
		return json.NewEncoder(s.Stdout).Encode(trustJSON{Root: root, Trusted: true, Files: files, Settings: settingsJSON(gained)})
	}
	_, err = fmt.Fprintln(s.Stdout, trustedWords(root, files))
	return err
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

func trustWords(root string, trust settings.Trust) string {
	switch {
	case trust.Trusted:
		return terminal.VisibleLine(root) + " is trusted."
	case len(trust.Changed) > 0:
		return terminal.VisibleLine(fmt.Sprintf("%s was trusted, but these files have changed since: %s.", root, strings.Join(trust.Changed, ", ")))
	default:
		return terminal.VisibleLine(root) + " is not trusted."
	}
}

func trustedWords(root string, files []string) string {
	if len(files) == 0 {
		return terminal.VisibleLine(root) + " is trusted. It has no settings files; one that appears takes the trust away."
	}
	return terminal.VisibleLine(fmt.Sprintf("%s is trusted, with these files as they are now: %s.", root, strings.Join(files, ", ")))
}
