// Files that hold credentials, recognised only by name.

package checkpoint

import (
	"path"
	"slices"
	"strings"
)

// credentialNames are base names, in lower case, of files that programs keep keys, tokens and passwords in; the list is
// ours, after the programs' manuals.
var credentialNames = []string{
	".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".htpasswd", ".s3cfg", ".boto", ".dockercfg",
	"credentials", "credentials.json", "credentials.toml", "credentials.db", "application_default_credentials.json", "client_secret.json",
	"secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "master.key", "terraform.tfvars", "kubeconfig", ".vault-token",
}

var credentialEndings = []string{
	".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdb", ".kdbx", ".ppk", ".asc", ".gpg", ".pgp", ".p8", ".tfstate", ".tfvars", ".ovpn",
}

// credentialDirs are directories in which every file may be one.
var credentialDirs = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", "gcloud"}

// templates are endings of names that stand for a file without its secrets.
var templates = []string{".example", ".sample", ".template", ".dist"}

// Credential returns, as a clause, why the file at a path is taken to hold credentials; empty: it is not.
func Credential(name string) string {
	base := strings.ToLower(path.Base(name))
	dirs := strings.Split(strings.ToLower(path.Dir(name)), "/")
	ends := func(ending string) bool { return strings.HasSuffix(base, ending) }
	switch {
	case slices.ContainsFunc(credentialDirs, func(dir string) bool { return slices.Contains(dirs, dir) }):
	case ends(".pub"), slices.ContainsFunc(templates, ends):
		return ""
	case slices.Contains(credentialNames, base), slices.ContainsFunc(credentialEndings, ends):
	case base == ".env", strings.HasPrefix(base, ".env."), ends(".env"), base == ".envrc":
	case strings.HasPrefix(base, "id_") && !strings.Contains(base, "."):
	default:
		return ""
	}
	return "by its name it holds credentials"
}
