package pipeline

// Which other files a git configuration file names, as git-config(1) describes its syntax. It runs nothing, and what it
// does not understand names nothing.

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gitConfigs are the configuration files of git among those that the table of programs names, and the first is git's alone.
var gitConfigs = []string{"~/.gitconfig", "$XDG_CONFIG_HOME/git/config"}

// gitFileKeys are the keys whose value is a file that a reading git opens. Conditional includes count whatever their
// condition.
var gitFileKeys = []string{
	"include.path", "includeif.path", "core.excludesfile", "core.attributesfile", "mailmap.file", "blame.ignorerevsfile", "diff.orderfile",
}

// Bounds of what is read: git follows includes ten deep, and a configuration is some kilobytes.
const (
	maxGitIncludes = 64
	maxGitConfig   = 1 << 20
)

// gitNames returns the files that a configuration file names, and those that the files which it includes name. They are
// absolute, and need not exist.
func gitNames(config, home string) (named []string) {
	configs := []string{config}
	for i := 0; i < len(configs) && i < maxGitIncludes; i++ {
		for _, setting := range gitSettings(readConfig(configs[i])) {
			path, includes := gitPath(setting.value, configs[i], home), strings.HasPrefix(setting.key, "include")
			if !slices.Contains(gitFileKeys, setting.key) || path == "" || !includes && !filepath.IsAbs(setting.value) && setting.value[0] != '~' {
				continue
			}
			named = append(named, path)
			if includes && !slices.Contains(configs, path) {
				configs = append(configs, path)
			}
		}
	}
	return named
}

// gitPath is the file that a value of a configuration file names; empty: git looks for it in its own installation. What is
// relative is relative to the directory of the name by which git opens the configuration file.
func gitPath(value, config, home string) string {
	switch {
	case value == "" || strings.HasPrefix(value, "%(prefix)"):
		return ""
	case strings.HasPrefix(value, "~/"):
		return filepath.Join(home, value[2:])
	case filepath.IsAbs(value):
		return filepath.Clean(value)
	}
	return filepath.Join(filepath.Dir(config), value)
}

// readConfig returns the text of a configuration file; empty: it is not a small file, or it cannot be read.
func readConfig(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxGitConfig {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
	if err != nil {
		return ""
	}
	return string(text)
}

// A gitSetting is one line of a configuration file. The key is in lower case, without a subsection.
type gitSetting struct{ key, value string }

// gitSettings takes the text of a configuration file apart.
func gitSettings(text string) (settings []gitSetting) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, line = gitSection(line[1:])
		}
		name, value, ok := strings.Cut(line, "=")
		if name = strings.ToLower(strings.TrimSpace(name)); ok && name != "" && name[0] != '#' && name[0] != ';' {
			settings = append(settings, gitSetting{section + "." + name, gitValue(strings.TrimSpace(value))})
		}
	}
	return settings
}

// gitSection takes the header of a section apart, behind its bracket: the name in lower case, and what follows the header.
func gitSection(line string) (name, rest string) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ']' && !quoted:
			name, _, _ = strings.Cut(line[:i], " ")
			name, _, _ = strings.Cut(name, `"`)
			return strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(line[i+1:])
		}
	}
	return "", ""
}

// gitValue takes quotes, escapes and comments out of a value.
func gitValue(text string) string {
	var b strings.Builder
	quoted, end := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
			continue
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case (c == '#' || c == ';') && !quoted:
			return b.String()[:end]
		default:
			b.WriteByte(c)
		}
		if quoted || text[i] != ' ' && text[i] != '\t' {
			end = b.Len()
		}
	}
	return b.String()[:end]
}
