package identity

// The metadata of a request that has what a workspace is created with, if it is new; it has no effect on one that exists. Gateways
// pass it to nodes.
const (
	StrictKey   = "toold-create-strict-effects" // "true"
	GitKey      = "toold-create-git"            // the URL or path of a repository
	GitRefKey   = "toold-create-git-ref"        // a branch, tag or commit of it
	SnapshotKey = "toold-create-snapshot"       // the name of a snapshot
)

// CreationKeys are all of that metadata.
var CreationKeys = []string{StrictKey, GitKey, GitRefKey, SnapshotKey}
