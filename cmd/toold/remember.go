// Rules that a person wants to be kept with a yes: which are offered, and what was picked of them. This file does not
// know what a rule means, nor does it keep any.

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
)

// scopes are the places where a rule can be kept, by the letter that is typed.
var scopes = []struct {
	letter, word string
	scope        tooldv1.Scope
	meaning      string
}{
	{"s", "session", tooldv1.Scope_SCOPE_SESSION, "this session"},
	{"l", "local", tooldv1.Scope_SCOPE_LOCAL, "this project, for you alone (.toold/settings.local.json)"},
	{"p", "project", tooldv1.Scope_SCOPE_PROJECT, "this project, for everybody (.toold/settings.json)"},
	{"u", "user", tooldv1.Scope_SCOPE_USER, "you, everywhere (your own settings file)"},
}

// always lets the person pick rules that go with a yes; nil when nothing comes of it. typed is what came with the word,
// such as "1 u".
func (p *person) always(ctx context.Context, q *tooldv1.Question, typed string) *tooldv1.Answer {
	offered := q.GetSuggestions()
	if len(offered) == 0 {
		p.tell(noSuggestion(q) + "\n")
		return nil
	}
	if typed == "" {
		p.tell(suggestionText(offered, p.ink))
	}
	for {
		if typed == "" {
			p.tell(p.ink.strong.Render("Which, and where?") + " Such as \"1\" or \"1 u\"; Enter goes back: ")
			line, err := p.line()
			if typed = strings.TrimSpace(line); ctx.Err() != nil || err != nil || typed == "" {
				return nil
			}
		}
		remember, wrong := pick(offered, typed)
		if wrong == "" {
			answer := reply(q, tooldv1.Decision_DECISION_ALLOW, "")
			answer.Remember = remember
			return answer
		}
		p.tell(wrong + "\n")
		typed = ""
	}
}

// suggestionText lists the rules by number, each with what it is about, and where they can be kept.
func suggestionText(offered []*tooldv1.Suggestion, k ink) string {
	var b strings.Builder
	width := 0
	for _, x := range offered {
		width = max(width, lipgloss.Width(visibleLine(x.GetRule())))
	}
	for i, x := range offered {
		rule := visibleLine(x.GetRule())
		fmt.Fprintf(&b, "  %d  %s %s%s  %s\n", i+1, x.GetList(), k.strong.Render(rule), strings.Repeat(" ", width-lipgloss.Width(rule)),
			k.dim.Render(visibleLine(covers(x.GetRule()))))
	}
	for _, x := range scopes {
		fmt.Fprintf(&b, "  %s  for %s\n", x.letter, x.meaning)
	}
	return b.String()
}

// noSuggestion says why there is nothing to pick.
func noSuggestion(q *tooldv1.Question) string {
	for _, g := range q.GetGrounds() {
		if rule := ruleWords(g); rule != "" && g.GetList() != "allow" {
			return "The " + rule + " asks whatever is allowed, so no rule can settle this. Answer this call alone."
		}
	}
	return "There is no rule to keep: none that covers this call is both narrow enough to be safe and able to settle it. Answer this call alone."
}

// pick reads which of the offered rules are wanted and where: numbers, then a scope, which is the session unless it is
// named. Of one rule the number may be left out. wrong says what was not understood.
func pick(offered []*tooldv1.Suggestion, typed string) (picked []*tooldv1.Remember, wrong string) {
	scope := tooldv1.Scope_SCOPE_SESSION
	var numbers []int
	words := strings.FieldsFunc(strings.ToLower(typed), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	for i, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			if n < 1 || n > len(offered) {
				return nil, fmt.Sprintf("There is no rule %d here: choose from 1 to %d.", n, len(offered))
			}
			numbers = append(numbers, n)
			continue
		}
		named, known := scopeNamed(word)
		if !known || i != len(words)-1 {
			return nil, fmt.Sprintf("%q is not understood: give numbers, then s, l, p or u.", visibleLine(word))
		}
		scope = named
	}
	if len(numbers) == 0 && len(offered) == 1 {
		numbers = []int{1}
	}
	if len(numbers) == 0 {
		return nil, fmt.Sprintf("Which of the %d rules? Name their numbers too.", len(offered))
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		x := offered[n-1]
		picked = append(picked, &tooldv1.Remember{Rule: x.GetRule(), List: x.GetList(), Scope: scope})
	}
	return picked, ""
}

func scopeNamed(word string) (tooldv1.Scope, bool) {
	for _, x := range scopes {
		if word == x.letter || word == x.word {
			return x.scope, true
		}
	}
	return tooldv1.Scope_SCOPE_UNSPECIFIED, false
}
