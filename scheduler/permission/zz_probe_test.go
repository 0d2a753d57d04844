package permission_test

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/shell"
)

func TestZZProbe(t *testing.T) {
	name := os.Getenv("PROBE")
	if name == "" {
		t.Skip()
	}
	file, _ := os.Open(name)
	in := bufio.NewScanner(file)
	around := permission.Around{Dir: "/home/u/work/app/sub", Home: "/home/u", Roots: []string{"/home/u/work/app"}}
	for in.Scan() {
		c := in.Text()
		found := shell.Analyze(c)
		effects := tools.Effects{Commands: found.Commands}
		for _, name := range found.Writes {
			effects.Writes = append(effects.Writes, tools.Path{Name: name})
		}
		got := permission.Critical(effects, around)
		mark := "-- "
		if got != "" {
			mark = "CRIT"
		}
		fmt.Printf("%s %s\t| %s\n", mark, c, got)
		if os.Getenv("V") != "" {
			for _, c := range found.Commands {
				fmt.Printf("      %q words", c.Name)
				for _, w := range c.Words {
					fmt.Printf(" %q/%v", w.Text, w.Literal)
				}
				fmt.Printf(" W=%q R=%q via=%q denyonly=%v text=%q assigns=%q\n", c.Writes, c.Reads, c.Via, c.DenyOnly, c.Text, c.Assigns)
			}
		}
	}
}
