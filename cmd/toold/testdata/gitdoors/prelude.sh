# Before the script of each door. pwn in the root is the program that must not run outside of the sandbox.

# settings prints a configuration that runs it.
settings() { printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = %s\n' "$pwn"; }

# evil makes a git directory that runs it.
evil() {
	mkdir -p "$1/objects" "$1/refs" "$1/hooks"
	echo 'ref: refs/heads/main' >"$1/HEAD"
	settings >"$1/config"
	printf '\tworktree = %s\n[remote "origin"]\n\turl = .\n\tuploadpack = %s\n' "$root" "$pwn" >>"$1/config"
	cp "$pwn" "$1/hooks/pre-commit"
	cp "$pwn" "$1/hooks/post-update"
}

root=$PWD pwn=$PWD/pwn
