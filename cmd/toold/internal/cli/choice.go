package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A choice is a flag whose value is one of a few words.
type choice struct {
	to    *string
	name  string
	words []string
}

// AddChoice adds a flag to cmd whose value is one of words, and its completion. *to is the default.
func AddChoice(cmd *cobra.Command, to *string, name, short, usage string, words ...string) {
	cmd.Flags().VarP(&choice{to, name, words}, name, short, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) String() string { return *c.to }

// Type returns the name that the help has for the value.
func (c *choice) Type() string { return "string" }

// Set refuses any other word with an Error, which [Verdict] finds in that of the command line.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return Misused("the %s %q is not known: choose one of %s", c.name, word, strings.Join(c.words, ", "))
	}
	*c.to = word
	return nil
}
