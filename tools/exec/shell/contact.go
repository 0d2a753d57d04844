// The hosts that commands name: in URLs, as user@host:path, and as operands of programs that are
// known to contact what they are given. Hosts that a program contacts without a word that names
// them are not found.

package shell

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// contacting are programs that contact the host that an operand names without a scheme.
const contacting = " curl wget http https xh ssh sftp telnet ping nc ncat ftp "

// onlyNoting are subcommands of git that keep an address and do not contact it.
const onlyNoting = " remote config commit tag notes "

var (
	networkScheme = regexp.MustCompile(`^(?i:https?|ftps?|wss?|ssh|git|git\+ssh|git\+https|sftp|rsync)://`)
	atHost        = regexp.MustCompile(`^[A-Za-z0-9._-]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+):`)
	hostShape     = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?((?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+)(?::[0-9]+)?(?:/.*)?$`)
	// switches are the flags of those programs that take no value, singly or several in one word.
	switches = regexp.MustCompile(`^(?:-[#0-9fgijklnpqsvIJLNORS]+|--(?:silent|show-error|fail|location|insecure|head|include|verbose|compressed|quiet|no-verbose|spider))$`)
)

// Hosts returns the hosts that the command names and may contact, as written, each once, in the
// order of its words. A command that only reads or that runs another one has none.
func (c *Command) Hosts() (hosts []string) {
	if words := c.gitWords(); c.ReadOnly || c.Transparent || len(c.Words) < 2 || c.IsGit() && len(words) > 1 && listed(onlyNoting, words[1].Text) {
		return nil
	}
	for i := range c.Words[1:] {
		if host := c.hostAt(c.Words[i : i+2]); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// NamesHost reports whether a literal word behind the command's name would name the host, as Hosts
// returns it.
func (c *Command) NamesHost(word, host string) bool {
	return c.hostAt([]Word{c.Words[0], {Text: word, Literal: true}}) == host
}

// hostAt returns the host that the second of two words names; empty: none.
func (c *Command) hostAt(words []Word) string {
	before, word := words[0].Text, words[1]
	if !word.Literal || word.sets() {
		return ""
	}
	host := hostIn(word.Text)
	if host == "" && listed(contacting, base(c.Name)) && (!strings.HasPrefix(before, "-") || switches.MatchString(before)) {
		host = firstGroup(hostShape, word.Text)
	}
	return host
}

// hostIn returns the host of a word that is a URL, has one as the value of a flag, or is
// user@host:path; empty: it is none of these.
func hostIn(text string) string {
	if flag, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(flag, "-") {
		text = value
	}
	if !networkScheme.MatchString(text) {
		return firstGroup(atHost, text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func firstGroup(shape *regexp.Regexp, text string) string {
	if found := shape.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
