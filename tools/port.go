package tools

import "fmt"

// A Port is a TCP port on which a background task listens in the sandbox, for results.
type Port struct {
	Number  int       `json:"port"`
	URL     string    `json:"url"` // by which the user reaches it while it is open
	State   PortState `json:"state"`
	Program string    `json:"program"` // that listens, as it names itself
}

// A PortState is whether a port can be reached from outside of the sandbox.
type PortState string

// The states.
const (
	PortOpen       PortState = "open"
	PortAsked      PortState = "asked"      // the user is asked about it, or will be
	PortRefused    PortState = "refused"    // the user refused
	PortNever      PortState = "never"      // settings keep it in the sandbox
	PortUnanswered PortState = "unanswered" // no client can be asked
	PortTaken      PortState = "taken"      // another program of the machine listens on the same port
	PortLimited    PortState = "limited"    // the session has as many open ports as it may have
	PortFailed     PortState = "failed"     // the daemon cannot listen there
)

// String returns the state of the port as a sentence for models and users.
func (p Port) String() string {
	inside := fmt.Sprintf("Port %d can be reached only by commands of this session", p.Number)
	switch p.State {
	case PortOpen:
		return fmt.Sprintf("Port %d is open to the user: open %s in a browser on this machine.", p.Number, p.URL)
	case PortAsked:
		return fmt.Sprintf("%s. The user is asked whether to open it, or will be in a moment; after a yes it is %s in a browser on this machine.", inside, p.URL)
	case PortRefused:
		return inside + ": the user did not allow it to be opened."
	case PortNever:
		return inside + `: the settings have "forwardPorts": "never".`
	case PortUnanswered:
		return inside + `: no attached client can ask the user. "sandbox": {"network": {"forwardPorts": "always"}} in the user's settings file opens ports without a question.`
	case PortTaken:
		return fmt.Sprintf("%s: another program on this machine listens on port %[2]d, so %[3]s cannot be opened. Have the server listen on another port.", inside, p.Number, p.URL)
	case PortLimited:
		return inside + ": the session has as many open ports as it may have. End another server first."
	}
	return fmt.Sprintf("%s: the daemon cannot listen at %s.", inside, p.URL)
}
