package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/scheduler/permission"
)

// A Level is the file that a rule is remembered in.
type Level uint8

// The levels.
const (
	Local   Level = iota // the workspace's own file that is not shared, .toold/settings.local.json
	Project              // the workspace's shared file, .toold/settings.json
	User                 // the user's file
)

// firstRule is the settings file that is made for a first rule.
const firstRule = "{}\n"

// Remember adds a rule to a list of the settings file of a level, for the workspace at root where the level is one of a
// workspace, and returns the file's path. Every other byte of the file stays; a rule that is there already leaves the file
// untouched. A workspace that was trusted stays so, and one that has no settings files yet is from then on; in any
// other an allow rule is refused, as it would not count.
// Nothing is written after an error, and the error describes what to do: a *permission.RuleError if nothing can ever match the
// rule, a *FileError if the file cannot be used or written.
func (s *Store) Remember(root string, to Level, rules permission.List, rule string) (file string, err error) {
	rule = strings.TrimSpace(rule)
	if !utf8.ValidString(rule) {
		return "", fmt.Errorf("the rule %q is not valid UTF-8, which settings files are", rule)
	}
	if _, err := permission.ParseRule(rules, rule, permission.Origin{File: "the rule to remember"}); err != nil {
		return "", err
	}
	err = s.exclusively(func() error {
		if to == User {
			file, err = s.rememberForUser(rules, rule)
		} else {
			file, err = s.rememberIn(root, to, rules, rule)
		}
		return err
	})
	return file, err
}

func (s *Store) rememberForUser(rules permission.List, rule string) (string, error) {
	if s.sources.User == "" {
		return "", errors.New("there is no settings file of the user to remember the rule in; start the daemon with --settings")
	}
	at, err := openLocation("", s.sources.User)
	if err != nil {
		return "", err
	}
	defer at.close()
	s.announce(at.file)
	_, err = at.remember(rules, rule, 0o600)
	return at.file, err
}

func (s *Store) rememberIn(root string, to Level, rules permission.List, rule string) (string, error) {
	real, err := realRoot(root)
	if err != nil {
		return "", err
	}
	b, err := s.book()
	if err != nil {
		return "", err
	}
	names := s.counting()
	sums, _ := sumsOf(real, names) // what is unusable is not what was trusted
	trust := b.trust(real, names, sums)
	if trust.Empty {
		trust.Trusted = true // what is written next is all there is
	}
	if rules == permission.AllowList && !trust.Trusted {
		return "", notTrusted(real, trust)
	}
	name, mode := projectLocal, os.FileMode(0o600)
	if to == Project {
		name, mode = projectShared, 0o644
	}
	at, err := openLocation(real, filepath.Join(real, name))
	if err != nil {
		return "", err
	}
	defer at.close()
	s.announce(at.file)
	written, err := at.remember(rules, rule, mode)
	if err != nil || !trust.Trusted || written.from == written.to {
		return at.file, err
	}
	if written.from != sums[name] {
		return at.file, fmt.Errorf("the rule is in %s now, but that file was changed by another program at the same moment, so that %s is no longer trusted. Look at the file and run: toold trust %s", at.file, real, quoted(real))
	}
	for _, name := range names {
		if stampOf(filepath.Join(real, name)).same(stampOf(at.file)) {
			sums[name] = written.to
		}
	}
	if was := b.Roots[real].Files[serversFile]; was != "" {
		sums[serversFile] = was
	}
	if err := s.rewrite(func(b *book) { b.Roots[real] = promise{sums} }); err != nil {
		return at.file, fmt.Errorf("the rule is in %s now, but %s is no longer trusted: %w", at.file, real, err)
	}
	return at.file, nil
}

func (s *Store) announce(file string) {
	if s.sources.Writing != nil {
		s.sources.Writing(file)
	}
}

// An edit is a file's hash before and after; empty: there was no file.
type edit struct{ from, to string }

// remember adds the rule to the file.
func (s *location) remember(rules permission.List, rule string, mode os.FileMode) (edit, error) {
	old, err := s.read()
	if err != nil {
		return edit{}, err
	}
	var done edit
	data := old
	if old != nil {
		done.from = sum(old)
	} else {
		data = []byte(firstRule)
	}
	next, err := withRule(s.file, data, rules, rule)
	if err != nil {
		return edit{}, fmt.Errorf("the rule was not remembered: %w", err)
	}
	if next == nil {
		done.to = done.from
		return done, nil
	}
	done.to = sum(next)
	if len(next) > maxBytes {
		return edit{}, tooLarge(s.file)
	}
	return done, s.write(old, next, mode)
}
