// Manual pages, one a command, made from the command tree. Packages have them; nothing else reads them.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toold/toold/cmd/toold/internal/cli"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write manual pages into a directory", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes the pages of a command and of those below it that are not hidden.
func writeManual(cmd *cobra.Command, dir string) error {
	file := filepath.Join(dir, manName(cmd)+".1")
	if err := os.WriteFile(file, []byte(manPage(cmd)), 0o644); err != nil { //nolint:gosec // a document for everyone
		return cli.Misused("the manual page cannot be written: %v", err)
	}
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		if err := writeManual(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns a command's page in the language of man(7).
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := manName(cmd)
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n%s\n.fi\n", strings.ToUpper(roff(name)), roff(name), roff(cmd.Short), roff(cmd.UseLine()))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(cmd.Long))
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	var others []string
	if cmd.HasParent() {
		others = append(others, manName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			others = append(others, manName(sub))
		}
	}
	for i, other := range others {
		others[i] = ".BR " + roff(other) + " (1)"
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		names := "--" + flag.Name
		if flag.Shorthand != "" {
			names = "-" + flag.Shorthand + ", " + names
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR %s\n%s\n", roff(names), roff(value), roff(usage))
	})
}

// roff escapes text, of which no line may begin with a control character.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
