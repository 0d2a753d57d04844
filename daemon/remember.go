// Rules that come with an answer: checked before the answer counts, kept after it.

package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/daemon/convert"

	"github.com/toold/toold/daemon/apierror"
	"github.com/toold/toold/daemon/journal"
	tooldv1 "github.com/toold/toold/gen/toold/v1"
	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/scheduler/pipeline"
)

// Bounds of the rules that answers bring, ours: far above what people need.
const (
	maxRemembered     = 16      // rules in one answer
	maxSessionRules   = 1000    // rules that a session keeps
	maxRememberedRule = 4 << 10 // bytes of a rule
)

// keeping is a rule that is to be kept, and where.
type keeping struct {
	remembered
	scope tooldv1.Scope
}

// parseRules reads the rules of an answer; the refusal says why one cannot be kept.
func (ask *asker) parseRules(wire []*tooldv1.Remember) (rules []keeping, refused *apierror.Error) {
	if len(wire) > maxRemembered {
		return nil, apierror.Invalidf("invalid_rule", "remember", "An answer may bring %d rules to remember, and this one has %d.", maxRemembered, len(wire))
	}
	for _, r := range wire {
		list, known := convert.ListIn(r)
		if !known {
			return nil, apierror.Invalidf("invalid_rule", "remember.list", "A rule is remembered in the list \"allow\", \"ask\" or \"deny\", not %q.", convert.Short(r.GetList()))
		}
		k := keeping{remembered{list, r.GetRule()}, r.GetScope()}
		if len(k.Rule) > maxRememberedRule {
			return nil, apierror.Invalidf("invalid_rule", "remember.rule", "A rule to remember has %d bytes, and at most %d are taken.", len(k.Rule), maxRememberedRule)
		}
		if _, err := permission.ParseRule(k.List, k.Rule, permission.Origin{File: rememberedOrigin}); err != nil {
			return nil, apierror.Invalidf("invalid_rule", "remember.rule", "The rule cannot be remembered: %v.", err)
		}
		if err := ask.checkScope(k); err != nil {
			return nil, err
		}
		rules = append(rules, k)
	}
	return rules, nil
}

// anchorRules puts the session's roots in front of what was suggested about paths and goes into the user's file: there ./ is the
// root of whatever session reads it, and the answer was for this one only. Rules that were not suggested stay as
// they are.
func (ask *asker) anchorRules(rules []keeping, suggested []string) (list []keeping) {
	for _, k := range rules {
		tool, path, relative := strings.Cut(k.Rule, "(./")
		if !relative || tool == "Bash" || k.scope != tooldv1.Scope_SCOPE_USER || !slices.Contains(suggested, k.Rule) {
			list = append(list, k)
			continue
		}
		for _, root := range ask.s.meta.Roots {
			if !strings.ContainsAny(root, `*?[]\()!`) { // which mean something in a rule
				list = append(list, keeping{remembered{k.List, tool + "(/" + strings.TrimSuffix(root, "/") + "/" + path}, k.scope})
			}
		}
	}
	return list
}

// checkScope refuses what would be written where it does not count.
func (ask *asker) checkScope(k keeping) *apierror.Error {
	switch k.scope {
	case tooldv1.Scope_SCOPE_UNSPECIFIED, tooldv1.Scope_SCOPE_SESSION, tooldv1.Scope_SCOPE_USER:
		return nil
	case tooldv1.Scope_SCOPE_LOCAL, tooldv1.Scope_SCOPE_PROJECT:
		if k.List != permission.AllowList {
			return nil
		}
		root := ask.s.meta.Roots[0]
		if now, err := ask.s.daemon.settings.Trusted(root); err == nil && (now.Trusted || now.Empty) {
			return nil
		}
		return apierror.Preconditionf("not_trusted", "remember.scope", "The files of the workspace %s are not trusted, so an allow rule in them would count in no session but one that trusts them unseen. Look at them and run \"toold trust %s\" first, or remember the rule for the session or the user.", convert.Clean(root), convert.Clean(root))
	}
	return apierror.Invalidf("invalid_rule", "remember.scope", "The scope %d of a rule to remember is not known.", k.scope)
}

// keepRules keeps the rules and closes the open questions that they decide. Clients are notified of a rule that cannot be written.
func (ask *asker) keepRules(rules []keeping) {
	if len(rules) == 0 {
		return
	}
	for _, k := range rules {
		if err := ask.keepRule(k); err != nil {
			ask.s.notifier.notify(nil, pipeline.Noticed{Code: "remember_failed", Message: fmt.Sprintf("The rule %s could not be remembered: %v. The answer counts all the same.", k.Rule, err)})
		}
	}
	ask.rejudge(ask.s.judge.policy())
}

func (ask *asker) keepRule(k keeping) error {
	if level, file := convert.LevelIn(k.scope); file {
		file, err := ask.s.daemon.settings.Remember(ask.s.meta.Roots[0], level, k.List, k.Rule)
		ask.s.daemon.runner.Spare(file) // what began while it was written has not made it either
		return err
	}
	pending, err := ask.addRule(k.remembered)
	if pending != nil {
		_, err = pending.Wait()
	}
	return err
}

// addRule takes a rule among the session's own; nil: it is there already, or there is no room.
func (ask *asker) addRule(rule remembered) (pending *journal.Pending, err error) {
	ask.s.update(func(its *state) {
		rules := its.questions.remembered
		switch {
		case slices.Contains(rules, rule):
		case len(rules) >= maxSessionRules:
			err = fmt.Errorf("the session remembers %d rules already", len(rules))
		default:
			its.questions.remembered = append(rules, rule)
			pending = its.ledger.keep(putState(keyRules, its.questions.remembered))
		}
	})
	return pending, err
}
