package permission

// What leave has to do with the sandbox: who may be let out of it, and what being in it allows.

import "fmt"

// Escape is what the settings say of calls that leave the sandbox, or stay in it. The zero value is the default.
type Escape struct {
	// Excluded are the rules of commands that run outside; nil: none.
	Excluded *Rules
	// Barred is where leaving is switched off; nil: it is not.
	Barred *Origin
	// AutoAllow is where it is said that confinement is leave enough; nil: it is not.
	AutoAllow *Origin
}

// Excludes says whether all that a call runs is to run outside the sandbox: each of its commands is met by a rule of
// excludedCommands or only reads, and one is met at least. What could not be read in full stays inside.
func (e Escape) Excludes(f *Facts) bool {
	if e.Excluded == nil || f.Hidden != "" || f.Unread {
		return false
	}
	c, met := read(f), false
	for i := range c.Commands {
		command := &c.Commands[i]
		switch {
		case e.Excluded.coveringCommand(&c.texts[i]) != nil:
			met = true
		case command.Transparent, command.DenyOnly, command.ReadOnly, command.Name == "" && len(command.Assigns) == 0:
		default:
			return false
		}
	}
	return met
}

// barred is why the call may not leave the sandbox, if it asks to.
func (e Escape) barred(f *Facts) (found []Ground) {
	if f.Unconfined && e.Barred != nil {
		found = append(found, Ground{Text: fmt.Sprintf(
			"It asks to run outside the sandbox, which sandbox.allowUnsandboxedCommands in %s switches off; leave dangerouslyDisableSandbox away.", e.Barred)})
	}
	return found
}

// confined is what allows a call for being confined, of which nothing says that it must not run.
func (e Escape) confined(f *Facts) (found []Ground) {
	if f.Boxed && e.AutoAllow != nil {
		found = append(found, Ground{Text: fmt.Sprintf("It runs confined, and sandbox.autoAllowBashIfSandboxed in %s lets such calls run.", e.AutoAllow)})
	}
	return found
}
