package mirror

// Keys of a session's state that the program which builds the session's journal in another place
// shares with the daemon that serves it there.
const (
	// MovedKey is the key under which that program notes, as the JSON of a [Moved], that the session
	// could not be moved whole. The daemon tells the client, and the model with the result of its next
	// call.
	MovedKey = "moved"
	// CheckpointKey begins the key of what a call has changed; the call's own key follows. A call
	// without such a row has nothing that can be undone.
	CheckpointKey = "checkpoint:"
	// RolledBackKey begins the key of a [RolledBack]; the key of its call follows.
	RolledBackKey = "rolledback:"
)

// Moved is what a session has lost on its way to another place.
type Moved struct {
	Code    string // of the notice, and of the results of calls that were under way; lower_snake_case
	Message string // whole sentences, for the user and the model
}

// RolledBack is a call whose changes are not in the files any more, though it has started. Its
// changes are neither listed nor undone.
type RolledBack struct {
	ToolUseID string `json:"tool_use_id"`
	Turn      uint64 `json:"turn"`
	Reason    string `json:"reason"` // whole sentences
}
