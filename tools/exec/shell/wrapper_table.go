// The programs that run others: where in their words the command begins, or the
// text of a script. Which of their flags take a value is listed as far as a
// command stands behind them; sources are their manuals.

package shell

// wrappers run other commands in ways that change what these do, so they are
// never read-only. env without arguments is in the table instead.
var wrappers = map[string]wrapperSpec{
	"env":  {values: "uCS", long: "unset chdir split-string", script: "-S", longScript: "--split-string"},
	"sudo": {values: "ughpCrtTUDR", long: "user group host prompt close-from role type command-timeout other-user chdir chroot"},
	"doas": {values: "uC"}, "pkexec": {long: "user"}, "gosu": {operands: 1}, "su-exec": {operands: 1},
	"su":      {values: "cCgGsTuw", long: "command group shell supp-group", operands: 1, script: "-c", longScript: "--command", permutes: true},
	"runuser": {values: "cugGsw", long: "command user group supp-group shell", script: "-c", longScript: "--command", permutes: true},
	"sg":      {operands: 1, script: "-c", permutes: true, joined: true},
	"setsid":  {}, "ionice": {values: "cnpPu", long: "class classdata pid pgid uid"},
	"watch":  {values: "nq", long: "interval equexit", joined: true},
	"flock":  {values: "wE", long: "timeout wait conflict-exit-code", operands: 1, script: "-c", longScript: "--command", permutes: true},
	"chroot": {operands: 1},
	"script": {values: "cOIBTmEo", script: "-c", longScript: "--command", permutes: true, operands: 1, optional: true},
	"exec":   {values: "a"}, "busybox": {}, "toybox": {}, "time": {values: "fo", long: "format output"},
	"coproc": {},
	"strace": {values: "opeuaEIPOSsUX"}, "ltrace": {values: "opeuasSnlx"}, "valgrind": {},
	"perf": {operands: 1}, "hyperfine": {values: "wmrpcsSN", joined: true},
	"taskset": {operands: 1}, "chrt": {values: "TPD", operands: 1, optional: true},
	"numactl": {values: "miNCPpl"}, "prlimit": {}, "cpulimit": {values: "lpe"},
	"unshare": {values: "SRw"}, "nsenter": {values: "tSG"}, "setpriv": {}, "capsh": {}, "bwrap": {},
	"firejail": {}, "proot": {values: "rbwq"},
	"fakeroot": {}, "unbuffer": {}, "rlwrap": {values: "abCcdDefgHijlmMoOpPqrsStwz"},
	"xvfb-run": {values: "nse"}, "catchsegv": {}, "eatmydata": {}, "faketime": {operands: 1},
	"torsocks": {}, "proxychains": {values: "f"}, "proxychains4": {values: "f"}, "caffeinate": {values: "tw"},
	"entr": {}, "direnv": {operands: 2},
	"parallel": {values: "jIaNLnSP", long: "jobs max-args joblog delay timeout arg-file colsep results", joined: true},
	"at":       {}, "batch": {},
	"systemd-run": {values: "pEuMHt", long: "property setenv unit slice machine host description uid gid nice working-directory on-calendar on-active on-boot"},
	"run0":        {}, "dbus-run-session": {long: "config-file dbus-daemon"},
	"setarch": {operands: 1, optional: true}, "linux64": {}, "linux32": {},
	"npx": {values: "pc", long: "package", script: "-c", longScript: "--call"}, "bunx": {}, "pnpx": {},
	"uvx": {long: "from with python"},
	// what is started first in a container, and what else changes how a program runs
	"tini": {values: "pe"}, "tini-static": {values: "pe"}, "dumb-init": {values: "r", long: "rewrite"},
	"catatonit": {},
	"chpst":     {values: "uUbePnmdofcr"}, "setuidgid": {operands: 1}, "s6-setuidgid": {operands: 1},
	"s6-softlimit": {values: "acdflmoprst"},
	"envdir":       {operands: 1}, "envuidgid": {operands: 1}, "softlimit": {values: "acdflmoprst"},
	"setlock": {operands: 1}, "with-contenv": {},
	"choom": {values: "np", long: "adjust pid"}, "chronic": {}, "ifne": {}, "safe-run": {},
	"pee": {joined: true}, "cgexec": {values: "g"},
	"daemonize": {values: "aceopuEl"}, "trickle": {values: "udwlsn"}, "retry": {}, "sshpass": {values: "pfPd"},
	"tsocks": {}, "torify": {},
	"aa-exec": {values: "pnd", long: "profile namespace"},
	"runcon":  {values: "utrl", operands: 1, optional: true}, "fakechroot": {},
	"schroot": {values: "cunSpdaors", long: "chroot user directory"}, "minijail0": {values: "bBcCeEfgkPStuvV"},
	"nsjail":        {},
	"flatpak-spawn": {long: "directory env"}, "heaptrack": {}, "gdbserver": {operands: 1},
	"dotenv":  {values: "ef", long: "env file"},
	"dotenvx": {operands: 1}, "envchain": {operands: 1}, "cross-env": {}, "cross-env-shell": {joined: true},
	"concurrently": {joined: true},
	"npm-run-all":  {joined: true},
	"watchexec":    {values: "weifds", long: "watch exts ignore filter debounce signal"},
	// shells whose scripts are read as bash's, as far as possible
	"fish": shellLike, "csh": shellLike, "tcsh": shellLike, "mksh": shellLike, "ksh93": shellLike,
	"yash": shellLike, "ash": shellLike,
	"oksh": shellLike, "osh": shellLike, "posh": shellLike, "rbash": shellLike, "pwsh": {joined: true},
	"powershell": {joined: true},
	"compgen":    {values: "AFGoPSWX", script: "-C", textOnly: true},
	"complete":   {values: "AFGoPSWX", script: "-C", textOnly: true},
	"mapfile":    {values: "cdnOsu", script: "-C", textOnly: true},
	"readarray":  {values: "cdnOsu", script: "-C", textOnly: true},
}

// subcommands are wrappers by their first operand.
var subcommands = map[string]map[string]wrapperSpec{
	"uv":     {"run": {values: "pwm", long: "with python package extra group env-file directory project"}},
	"poetry": {"run": {}},
	"pipenv": {"run": {}},
	"hatch":  {"run": {}},
	"bundle": {"exec": {}},
	"npm":    {"exec": {long: "package", script: "-c", longScript: "--call"}, "x": {script: "-c", longScript: "--call"}},
	"pnpm":   {"exec": {script: "-c"}, "dlx": {}},
	"yarn":   {"exec": {}, "dlx": {}},
	"bun":    {"x": {}},
	"mise":   {"exec": {}, "x": {}},
	"nix":    {"shell": {script: "-c", longScript: "--command"}, "develop": {script: "-c", longScript: "--command"}},
	"conda":  {"run": condaRun}, "mamba": {"run": condaRun}, "micromamba": {"run": condaRun},
	"rtx":   {"exec": {}, "x": {}},
	"asdf":  {"exec": {}, "env": {operands: 1}},
	"rbenv": {"exec": {}}, "pyenv": {"exec": {}}, "nodenv": {"exec": {}}, "goenv": {"exec": {}},
	"jenv": {"exec": {}}, "plenv": {"exec": {}},
	"phpenv": {"exec": {}}, "volta": {"run": {long: "node npm yarn pnpm"}}, "fnm": {"exec": {long: "using"}},
	"nvm": {"exec": {operands: 1, optional: true}, "run": {operands: 1}}, "rustup": {"run": {operands: 1}},
	"rvm":  {"do": {}, "exec": {}},
	"opam": {"exec": {}}, "stack": {"exec": {}}, "cabal": {"exec": {}}, "pixi": {"run": {}, "exec": {}},
	"pdm": {"run": {}},
	"rye": {"run": {}}, "pipx": {"run": {}}, "composer": {"exec": {}}, "devbox": {"run": {}},

	"lerna": {"exec": {}}, "nx": {"exec": {}}, "mix": {"cmd": {}}, "meson": {"devenv": {values: "Cw"}},
	"op":        {"run": {long: "env-file"}},
	"doppler":   {"run": {values: "p", long: "project config", script: "-c", longScript: "--command", permutes: true}},
	"aws-vault": {"exec": {values: "dn", long: "duration region", operands: 1}},
	"chamber":   {"exec": {operands: 1}},
	"docker":    containers, "podman": containers, "nerdctl": containers,
	"docker-compose": {"exec": containerExec, "run": containerRun},
	"podman-compose": {"exec": containerExec, "run": containerRun},
	"buildah":        {"run": containerExec, "unshare": {}}, "crictl": {"exec": containerExec},
	"runc":        {"exec": containerExec},
	"apptainer":   {"exec": containerExec, "run": containerExec},
	"singularity": {"exec": containerExec, "run": containerExec},
	"kubectl":     {"exec": kubeExec, "run": kubeExec, "debug": kubeExec},
	"oc":          {"exec": kubeExec, "rsh": kubeExec, "run": kubeExec},
	"lxc":         {"exec": {operands: 1, remote: true}}, "incus": {"exec": {operands: 1, remote: true}},
	"flatpak":    {"run": {long: "branch arch", script: "-c", longScript: "--command", operands: 1}, "enter": {operands: 1}},
	"machinectl": {"shell": {values: "E", long: "uid setenv", operands: 1, optional: true}},
	"toolbox":    {"run": {values: "cdr", long: "container distro release"}},
	"distrobox":  {"enter": {values: "na", long: "name", operands: 1, optional: true}},
	"vagrant":    {"ssh": {script: "-c", longScript: "--command", permutes: true, textOnly: true, remote: true}},
	"adb":        {"shell": remoteShell, "exec-out": remoteShell}, "multipass": {"exec": {operands: 1, remote: true}},
	"limactl": {"shell": {operands: 1, remote: true}}, "wsl": {"-e": {}, "--exec": {}, "--": {}},
	"heroku":    {"run": remoteShell},
	"ip":        {"netns exec": {operands: 1}, "vrf exec": {operands: 1}, "-n": {operands: 1}},
	"nix-shell": {"--run": {joined: true}, "--command": {joined: true}},
	"tmux":      {"new": tmux, "new-session": tmux, "neww": tmux, "new-window": tmux, "splitw": tmux, "split-window": tmux, "respawn-pane": tmux, "run": tmux, "run-shell": tmux, "send-keys": tmux, "send": tmux},
	"screen":    {"-dm": {values: "SchpTs"}, "-dmS": {operands: 1, values: "chpTs"}, "-S": {operands: 1, values: "chpTs"}},
	"git": {
		"rebase":            {script: "-x", longScript: "--exec", textOnly: true},
		"difftool":          {script: "-x", longScript: "--extcmd", textOnly: true},
		"submodule foreach": {joined: true}, "bisect run": {}, "for-each-repo": {},
	},
}

var tmux = wrapperSpec{values: "ceFfnstxylpbN", joined: true}

var (
	shellLike     = wrapperSpec{values: "oO", script: "-c", longScript: "--command", textOnly: true, permutes: true}
	condaRun      = wrapperSpec{values: "np", long: "name prefix cwd"}
	remoteShell   = wrapperSpec{joined: true, remote: true}
	containerExec = wrapperSpec{
		values: "euw", long: "detach-keys env env-file user workdir index pwd bind", operands: 1, remote: true,
	}
	containerRun = wrapperSpec{
		values: "aceHhlmpPuvw", operands: 1, remote: true,
		long: "entrypoint name network env env-file user volume workdir mount publish label hostname platform pull cpus memory" +
			" restart ulimit device tmpfs add-host cap-add cap-drop dns expose gpus ipc link log-driver log-opt pid runtime" +
			" security-opt shm-size cidfile cgroup-parent",
	}
	containers = map[string]wrapperSpec{
		"exec": containerExec, "run": containerRun, "create": containerRun, "unshare": {},
		"container exec": containerExec, "container run": containerRun, "compose exec": containerExec,
		"compose run": containerRun,
	}
	kubeExec = wrapperSpec{
		values: "cnfs", operands: 1, remote: true,
		long: "container namespace context kubeconfig image filename target cluster user pod-running-timeout",
	}
	ssh = wrapperSpec{values: "bBcDeEFiIJlLmoOpPQRSwW", operands: 1, joined: true, remote: true}
)

// beside are programs of the other tables, and git's, with the flags whose value is
// the text of a command that they run.
var beside = map[string]string{
	"tar": " --to-command --use-compress-program -I --rsh-command --rmt-command --info-script --new-volume-script -F" +
		" --checkpoint-action ",
	"bsdtar": " --use-compress-program ",
	"split":  " --filter ", "sort": " --compress-program ", "rg": " --pre ", "man": " -P --pager -H --html ",
	"ag":    " --pager ",
	"rsync": " -e --rsh --rsync-path ", "scp": " -S ", "sftp": " -S ", "go": " -exec -toolexec -vettool ",
	"fzf":    " --preview ",
	"docker": " --entrypoint ", "podman": " --entrypoint ", "nerdctl": " --entrypoint ",
	"cargo-watch": " -s --shell ",
	"nodemon":     " -x --exec ", "zip": " -TT --unzip-command ", "repo": " -c ",
	"git": " --tree-filter --index-filter --msg-filter --env-filter --parent-filter --commit-filter --tag-name-filter" +
		" --setup --upload-pack --receive-pack --upload-archive --open-files-in-pager --extcmd --exec --smtp-server" +
		" --sendmail-cmd --to-cmd --cc-cmd ",
}
