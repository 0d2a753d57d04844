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

// A Keeper is a place where a rule can be kept.
type Keeper struct {
	letter  string // that the user types
	Word    string // or this one
	Meaning string
	scope   tooldv1.Scope
}

// Keepers are the places in the order in which they are offered. The first one counts where none is named.
var Keepers = []Keeper{
	{"s", "session", "this session (so it is if you name no place)", tooldv1.Scope_SCOPE_SESSION},
	{"l", "local", "this project, for you alone (.toold/settings.local.json)", tooldv1.Scope_SCOPE_LOCAL},
	{"p", "project", "this project, for everyone (.toold/settings.json)", tooldv1.Scope_SCOPE_PROJECT},
	{"u", "user", "you (your own settings file): commands in every project, paths such as ./src in this one alone", tooldv1.Scope_SCOPE_USER},
}

// passingKeepers are the places for a session that ends with its turn, where a rule of the session is soon gone.
var passingKeepers = append(Keepers[1:len(Keepers):len(Keepers)], Keeper{
	"s", "session", "the rest of this turn alone: this session ends with it (--session NAME uses one that stays)", tooldv1.Scope_SCOPE_SESSION,
})

// KeepersFor returns those of the places that are offered with a question. A rule that opens a host to programs is not
// kept in a file of the workspace.
func KeepersFor(q *tooldv1.Question, keepers []Keeper) []Keeper {
	if q.GetConnection() == nil {
		return keepers
	}
	return slices.DeleteFunc(slices.Clone(keepers), func(x Keeper) bool {
		return x.scope == tooldv1.Scope_SCOPE_LOCAL || x.scope == tooldv1.Scope_SCOPE_PROJECT
	})
}

// keeperOf returns the place of a word or letter that the user typed; false: it is none of these.
func keeperOf(keepers []Keeper, word string) (Keeper, bool) {
	i := slices.IndexFunc(keepers, func(x Keeper) bool { return word == x.letter || word == x.Word })
	return keepers[max(i, 0)], i >= 0
}

// KeeperWords returns the words of the places.
func KeeperWords() (words []string) {
	for _, x := range Keepers {
		words = append(words, x.Word)
	}
	return words
}

// Remembered returns what an answer carries to keep rules at the place of that word.
func Remembered(rules []*tooldv1.Suggestion, word string) (kept []*tooldv1.Remember) {
	place, _ := keeperOf(Keepers, word)
	for _, x := range rules {
		kept = append(kept, &tooldv1.Remember{Rule: x.GetRule(), List: x.GetList(), Scope: place.scope})
	}
	return kept
}

// always lets the user pick rules that go with a yes; nil when nothing comes of it. typed is what came with the word,
// such as "1 u".
func (p *Prompter) always(ctx context.Context, q *tooldv1.Question, typed string) *tooldv1.Answer {
	offered := q.GetSuggestions()
	if len(offered) == 0 {
		p.tell(NoSuggestion(q) + "\n")
		return nil
	}
	example, keepers := `"1" or "1 u"`, Keepers
	if p.Passing {
		example, keepers = `"1 u"`, passingKeepers
	}
	keepers = KeepersFor(q, keepers)
	for list := typed == ""; ; typed = "" {
		if list {
			p.tell(suggestionText(offered, keepers, p.ink))
		}
		if typed == "" {
			p.tell(p.ink.Strong.Render("Which, and where?") + " Such as " + example + "; Enter goes back: ")
			line, err := p.line()
			if typed = strings.TrimSpace(line); ctx.Err() != nil || err != nil || typed == "" {
				return nil
			}
		}
		if list = typed == "?"; list {
			continue
		}
		remember, wrong := pick(offered, typed, keepers, p.Passing)
		if wrong == "" {
			answer := reply(q, tooldv1.Decision_DECISION_ALLOW, "")
			answer.Remember = remember
			return answer
		}
		p.tell(wrong + "\n")
	}
}

// suggestionText lists the rules by number, each with what it is about, and where they can be kept.
func suggestionText(offered []*tooldv1.Suggestion, keepers []Keeper, k Ink) string {
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
		fmt.Fprintf(&b, "  %s  for %s\n", x.letter, x.Meaning)
	}
	return b.String()
}

// NoSuggestion returns why there is nothing to pick.
func NoSuggestion(q *tooldv1.Question) string {
	why := ": none that covers this call is both narrow enough to be safe and able to settle it."
	for _, g := range q.GetGrounds() {
		rule, about := RuleWords(g), "is"
		if rule != "" && g.GetList() == "allow" || permission.Code(g.GetCode()).ByNoRule() {
			continue
		}
		if g.GetCode() == string(permission.ByRuleDoubtful) {
			about = "may be"
		}
		why = fmt.Sprintf(": the %s %s about this call, and no other rule passes it.", rule, about)
		if rule == "" && about == "is" {
			why = ", since none passes what asks here. " + VisibleLine(g.GetText())
		}
		break
	}
	return "There is no rule to keep" + why + " Answer this call alone."
}

// pick reads which of the offered rules are wanted and where: numbers, then a place, which is the session unless it is
// named or passing is set. If only one is offered its number may be left out. wrong is what was not understood.
func pick(offered []*tooldv1.Suggestion, typed string, keepers []Keeper, passing bool) (picked []*tooldv1.Remember, wrong string) {
	place := ""
	var numbers []int
	words := strings.FieldsFunc(strings.ToLower(typed), func(r rune) bool { return strings.ContainsRune(" ,\t", r) })
	for i, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			if n < 1 || n > len(offered) {
				return nil, fmt.Sprintf("There is no rule %d here: choose from 1 to %d.", n, len(offered))
			}
			numbers = append(numbers, n)
			continue
		}
		if _, known := keeperOf(keepers, word); !known || i != len(words)-1 {
			return nil, fmt.Sprintf("%q is not understood: give numbers, then %s.", VisibleLine(word), letters(keepers))
		}
		place = word
	}
	switch {
	case len(numbers) == 0 && len(offered) == 1:
		numbers = []int{1}
	case len(numbers) == 0:
		return nil, fmt.Sprintf("Which of the %d rules? Name their numbers too.", len(offered))
	}
	if place == "" && passing {
		return nil, "Where is it to be kept? This session ends with the turn, so name " + letters(keepers) + " too, such as \"1 u\"."
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		picked = append(picked, Remembered(offered[n-1:n], place)...)
	}
	return picked, ""
}

// letters lists those of the places, as in "s, l, p or u".
func letters(keepers []Keeper) string {
	var all []string
	for _, x := range keepers {
		all = append(all, x.letter)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}
