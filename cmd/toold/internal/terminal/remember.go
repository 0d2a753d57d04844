// Rules that the user wants to be kept with a yes: which are offered, and what was picked of them.

package terminal

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
)

// A keeper is a place where a rule can be kept, by the letter that is typed.
type keeper struct {
	letter, word string
	scope        tooldv1.Scope
	meaning      string
}

var scopes = []keeper{
	{"s", "session", tooldv1.Scope_SCOPE_SESSION, "this session (so it is if you name no place)"},
	{"l", "local", tooldv1.Scope_SCOPE_LOCAL, "this project, for you alone (.toold/settings.local.json)"},
	{"p", "project", tooldv1.Scope_SCOPE_PROJECT, "this project, for everyone (.toold/settings.json)"},
	{"u", "user", tooldv1.Scope_SCOPE_USER, "you (your own settings file): commands in every project, paths such as ./src in this one alone"},
}

// passingScopes are the places for a session that ends with its turn, where a rule of the session is soon gone.
var passingScopes = append(scopes[1:len(scopes):len(scopes)], keeper{
	"s", "session", tooldv1.Scope_SCOPE_SESSION, "the rest of this turn alone: this session ends with it (--session NAME uses one that stays)",
})

// keepers returns the places in the order in which they are offered.
func (p *Prompter) keepers() []keeper {
	if p.passing {
		return passingScopes
	}
	return scopes
}

// always lets the user pick rules that go with a yes; nil when nothing comes of it. typed is what came with the word,
// such as "1 u".
func (p *Prompter) always(ctx context.Context, q *tooldv1.Question, typed string) *tooldv1.Answer {
	offered := q.GetSuggestions()
	if len(offered) == 0 {
		p.tell(NoSuggestion(q) + "\n")
		return nil
	}
	example := `"1" or "1 u"`
	if p.passing {
		example = `"1 l" or "1 u"`
	}
	if typed == "" {
		p.tell(suggestionText(offered, p.keepers(), p.ink))
	}
	for {
		if typed == "" {
			p.tell(p.ink.Strong.Render("Which, and where?") + " Such as " + example + "; Enter goes back: ")
			line, err := p.line()
			if typed = strings.TrimSpace(line); ctx.Err() != nil || err != nil || typed == "" {
				return nil
			}
		}
		if typed == "?" {
			p.tell(suggestionText(offered, p.keepers(), p.ink))
			typed = ""
			continue
		}
		remember, wrong := pick(offered, typed)
		if wrong == "" && p.passing && !namesScope(typed) {
			remember, wrong = nil, "Where is it to be kept? This session ends with the turn, so name l, p or u too, such as \"1 u\"."
		}
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
func suggestionText(offered []*tooldv1.Suggestion, keepers []keeper, k Ink) string {
	var b strings.Builder
	width := 0
	for _, x := range offered {
		width = max(width, lipgloss.Width(VisibleLine(x.GetRule())))
	}
	for i, x := range offered {
		rule := VisibleLine(x.GetRule())
		fmt.Fprintf(&b, "  %d  %s %s%s  %s\n", i+1, x.GetList(), k.Strong.Render(rule), strings.Repeat(" ", width-lipgloss.Width(rule)),
			k.Dim.Render(VisibleLine(Covers(x.GetRule()))))
	}
	for _, x := range keepers {
		fmt.Fprintf(&b, "  %s  for %s\n", x.letter, x.meaning)
	}
	return b.String()
}

// NoSuggestion returns why there is nothing to pick.
func NoSuggestion(q *tooldv1.Question) string {
	for _, g := range q.GetGrounds() {
		text := VisibleLine(g.GetText())
		switch rule := RuleWords(g); {
		case rule != "" && g.GetList() == "allow", permission.Code(g.GetCode()).ByNoRule():
		case g.GetCode() == string(permission.ByRuleDoubtful):
			return "There is no rule to keep: the " + rule + " may be about this call, and no other rule passes it. Answer this call alone."
		case rule != "":
			return "There is no rule to keep: the " + rule + " is about this call, and no other rule passes it. Answer this call alone."
		default:
			return "There is no rule to keep, since none passes what asks here. " + text + " Answer this call alone."
		}
	}
	return "There is no rule to keep: none that covers this call is both narrow enough to be safe and able to settle it. Answer this call alone."
}

// pick reads which of the offered rules are wanted and where: numbers, then a scope, which is the session unless it is
// named. If only one is offered its number may be left out. wrong is what was not understood.
func pick(offered []*tooldv1.Suggestion, typed string) (picked []*tooldv1.Remember, wrong string) {
	scope := tooldv1.Scope_SCOPE_SESSION
	var numbers []int
	words := strings.FieldsFunc(strings.ToLower(typed), isGap)
	for i, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			if n < 1 || n > len(offered) {
				return nil, fmt.Sprintf("There is no rule %d here: choose from 1 to %d.", n, len(offered))
			}
			numbers = append(numbers, n)
			continue
		}
		named, known := ScopeNamed(word)
		if !known || i != len(words)-1 {
			return nil, fmt.Sprintf("%q is not understood: give numbers, then s, l, p or u.", VisibleLine(word))
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

// namesScope reports whether the last word of what was typed is a place.
func namesScope(typed string) bool {
	words := strings.FieldsFunc(strings.ToLower(typed), isGap)
	_, named := ScopeNamed(words[len(words)-1])
	return named
}

func isGap(r rune) bool { return r == ' ' || r == ',' || r == '\t' }

// ScopeNamed returns the scope of a word or letter that the user typed, and whether it is one.
func ScopeNamed(word string) (tooldv1.Scope, bool) {
	for _, x := range scopes {
		if word == x.letter || word == x.word {
			return x.scope, true
		}
	}
	return tooldv1.Scope_SCOPE_UNSPECIFIED, false
}
