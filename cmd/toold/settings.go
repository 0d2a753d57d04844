// The settings files as they count for a workspace, shown to the user. The settings package decides what counts, and
// why; no daemon is asked.

package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/cmd/toold/internal/cli"
	"github.com/toold/toold/cmd/toold/internal/terminal"
	"github.com/toold/toold/daemon/settings"
)

// settingsFiles are the paths of the settings files that do not belong to a workspace.
type settingsFiles struct {
	user    string
	managed string
}

func (f *settingsFiles) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.user, "settings", settings.DefaultPath(), "the user's settings file")
	flags.StringVar(&f.managed, "managed-settings", settings.DefaultSources("").ManagedDir, "the folder of the administrator's settings")
	_ = flags.MarkHidden("managed-settings")
	_ = cmd.MarkFlagFilename("settings", "json")
}

// absolute makes the paths such that messages name them well, wherever they are read.
func (f *settingsFiles) absolute() (err error) {
	for _, path := range []*string{&f.user, &f.managed} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	return err
}

// store opens the files.
func (f *settingsFiles) store() *settings.Store {
	sources := settings.DefaultSources(f.user)
	sources.ManagedDir = f.managed
	return settings.Open(sources)
}

// here returns the open files and the folder that a command was given, else the working directory. Nothing is looked for further up.
func (f *settingsFiles) here(args []string) (store *settings.Store, root string, err error) {
	if err = f.absolute(); err == nil {
		root, err = servedRoot(strings.Join(args, "")) // one at most
	}
	return f.store(), root, err
}

func (s *app) settingsCommand() *cobra.Command {
	var files settingsFiles
	cmd := &cobra.Command{
		Use:   "settings [DIR]",
		Short: "Show the merged settings, each value with the file and line it comes from",
		Long: "Shows the settings that count in the workspace DIR (default: the working directory): those of the administrator,\n" +
			"of the workspace and of the user, merged, each value with the file and the line that it comes from. Below them stands\n" +
			"what is wrong with any of the files: what is not known, rules that can never match, what an untrusted workspace may not say.",
		Example:           "  toold settings\n  toold settings ~/src/project --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: cli.Action(func(_ context.Context, args []string) error {
			store, root, err := files.here(args)
			if err != nil {
				return err
			}
			return s.showSettings(store.Load(settings.Scope{Roots: []string{root}}))
		}),
	}
	files.add(cmd)
	return cmd
}

func (s *app) showSettings(now *settings.Settings) error {
	var text strings.Builder
	err := now.Print(&text)
	if err == nil {
		err = s.Show(struct {
			Settings  []settingJSON `json:"settings"`
			Untrusted []string      `json:"untrusted"`
			Warnings  []string      `json:"warnings"`
		}{settingsJSON(now.Lines()), append([]string{}, now.Untrusted...), append([]string{}, now.WarningTexts()...)}, text.String())
	}
	if err == nil && len(now.Broken) > 0 {
		return cli.Failed("%s cannot be used; the warnings say why", terminal.Count(len(now.Broken), "settings file"))
	}
	return err
}

// A settingJSON is one value for programs.
type settingJSON struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"`
}

func settingsJSON(lines []settings.Line) []settingJSON {
	out := make([]settingJSON, 0, len(lines))
	for _, l := range lines {
		out = append(out, settingJSON{l.Key, l.Value, l.Origin.File, l.Origin.Line})
	}
	return out
}
