// The programs that run others: where in their words the command begins, or the
// text of a script. Which of their flags take a value is listed as far as a
// command stands behind them; sources are their manuals.

package shell

import "strings"

// wrappers run other commands in ways that change what these do, so they are
// never read-only. env without arguments is in the table instead.
var wrappers = each(map[string]wrapperSpec{
	"env":         {values: "uCS", long: "unset chdir split-string", script: "-S --split-string"},
	"sudo":        {values: "ughpCrtTUDR", long: "user group host prompt close-from role type command-timeout other-user chdir chroot"},
	"doas":        {values: "uC"},
	"pkexec":      {long: "user"},
	"su":          {values: "cCgGsTuw", long: "command group shell supp-group", operands: 1, script: "-c --command", permutes: true},
	"runuser":     {values: "cugGsw", long: "command user group supp-group shell", script: "-c --command", permutes: true},
	"sg":          {operands: 1, script: "-c", permutes: true, joined: true},
	"ionice":      {values: "cnpPu", long: "class classdata pid pgid uid"},
	"watch":       {values: "nq", long: "interval equexit", joined: true},
	"flock":       {values: "wE", long: "timeout wait conflict-exit-code", operands: 1, script: "-c --command", permutes: true},
	"script":      {values: "cOIBTmEo", script: "-c --command", permutes: true, operands: 1, optional: true},
	"exec":        {values: "a"},
	"time":        {values: "fo", long: "format output"},
	"strace":      {values: "opeuaEIPOSsUX"},
	"ltrace":      {values: "opeuasSnlx"},
	"hyperfine":   {values: "wmrpcsSN", joined: true},
	"chrt":        {values: "TPD", operands: 1, optional: true},
	"numactl":     {values: "miNCPpl"},
	"cpulimit":    {values: "lpe"},
	"unshare":     {values: "SRw"},
	"nsenter":     {values: "tSG"},
	"proot":       {values: "rbwq"},
	"rlwrap":      {values: "abCcdDefgHijlmMoOpPqrsStwz"},
	"xvfb-run":    {values: "nse"},
	"caffeinate":  {values: "tw"},
	"direnv":      {operands: 2},
	"parallel":    {values: "jIaNLnSP", long: "jobs max-args joblog delay timeout arg-file colsep results", joined: true},
	"systemd-run": {values: "pEuMHt", long: "property setenv unit slice machine host description uid gid nice working-directory on-calendar on-active on-boot"},
	"npx":         {values: "pc", long: "package", script: "-c --call"},
	"uvx":         {long: "from with python"},
	"cgexec":      {values: "g"},
	"daemonize":   {values: "aceopuEl"},
	"trickle":     {values: "udwlsn"},
	"sshpass":     {values: "pfPd"},
	"aa-exec":     {values: "pnd", long: "profile namespace"},
	"runcon":      {values: "utrl", operands: 1, optional: true},
	"schroot":     {values: "cunSpdaors", long: "chroot user directory"},
	"minijail0":   {values: "bBcCeEfgkPStuvV"},
	"dotenv":      {values: "ef", long: "env file"},
	"watchexec":   {values: "weifds", long: "watch exts ignore filter debounce signal"},
	// what is started first in a container, and what else changes how a program runs
	"tini tini-static":       {values: "pe"},
	"dumb-init":              {values: "r", long: "rewrite"},
	"chpst":                  {values: "uUbePnmdofcr"},
	"s6-softlimit softlimit": {values: "acdflmoprst"},
	"choom":                  {values: "np", long: "adjust pid"},
	"dbus-run-session":       {long: "config-file dbus-daemon"},
	"flatpak-spawn":          {long: "directory env"},

	"proxychains proxychains4": {values: "f"},
	"setarch":                  {operands: 1, optional: true},
	"gosu su-exec chroot perf taskset faketime setuidgid s6-setuidgid envdir envuidgid setlock gdbserver dotenvx envchain": {operands: 1},
	"setsid busybox toybox coproc valgrind prlimit setpriv capsh bwrap firejail fakeroot unbuffer catchsegv eatmydata torsocks entr at batch run0" +
		" linux64 linux32 bunx pnpx catatonit with-contenv chronic ifne safe-run retry tsocks torify fakechroot nsjail heaptrack cross-env": {},
	"pee cross-env-shell concurrently npm-run-all pwsh powershell": {joined: true},
	// shells whose scripts are read as bash's, as far as possible
	"fish csh tcsh mksh ksh93 yash ash oksh osh posh rbash": {values: "oO", script: "-c --command", textOnly: true, permutes: true},

	"compgen complete":  {values: "AFGoPSWX", script: "-C", textOnly: true},
	"mapfile readarray": {values: "cdnOsu", script: "-C", textOnly: true},
})

// each returns a table with a row for each name, of one whose keys are several names that are
// separated by blanks.
func each[Row any](rows map[string]Row) map[string]Row {
	table := make(map[string]Row, len(rows))
	for names, row := range rows {
		for name := range strings.FieldsSeq(names) {
			table[name] = row
		}
	}
	return table
}

// subcommands are wrappers by their first operand.
var subcommands = each(map[string]map[string]wrapperSpec{
	"uv":                            {"run": {values: "pwm", long: "with python package extra group env-file directory project"}},
	"npm":                           {"exec": {long: "package", script: "-c --call"}, "x": {script: "-c --call"}},
	"pnpm":                          {"exec": {script: "-c"}, "dlx": {}},
	"yarn":                          {"exec": {}, "dlx": {}},
	"bun":                           {"x": {}},
	"mise rtx":                      {"exec": {}, "x": {}},
	"nix":                           {"shell": nixCommand, "develop": nixCommand},
	"conda mamba micromamba":        {"run": {values: "np", long: "name prefix cwd"}},
	"asdf":                          {"exec": {}, "env": {operands: 1}},
	"volta":                         {"run": {long: "node npm yarn pnpm"}},
	"fnm":                           {"exec": {long: "using"}},
	"nvm":                           {"exec": {operands: 1, optional: true}, "run": {operands: 1}},
	"rustup":                        {"run": {operands: 1}},
	"rvm":                           {"do": {}, "exec": {}},
	"pixi":                          {"run": {}, "exec": {}},
	"mix":                           {"cmd": {}},
	"meson":                         {"devenv": {values: "Cw"}},
	"op":                            {"run": {long: "env-file"}},
	"doppler":                       {"run": {values: "p", long: "project config", script: "-c --command", permutes: true}},
	"aws-vault":                     {"exec": {values: "dn", long: "duration region", operands: 1}},
	"chamber":                       {"exec": {operands: 1}},
	"docker podman nerdctl":         containers,
	"docker-compose podman-compose": {"exec": containerExec, "run": containerRun},
	"buildah":                       {"run": containerExec, "unshare": {}},
	"crictl runc":                   {"exec": containerExec},
	"apptainer singularity":         {"exec": containerExec, "run": containerExec},
	"kubectl":                       {"exec": kubeExec, "run": kubeExec, "debug": kubeExec},
	"oc":                            {"exec": kubeExec, "rsh": kubeExec, "run": kubeExec},
	"lxc incus multipass":           {"exec": {operands: 1, remote: true}},
	"flatpak":                       {"run": {long: "branch arch", script: "-c --command", operands: 1}, "enter": {operands: 1}},
	"machinectl":                    {"shell": {values: "E", long: "uid setenv", operands: 1, optional: true}},
	"toolbox":                       {"run": {values: "cdr", long: "container distro release"}},
	"distrobox":                     {"enter": {values: "na", long: "name", operands: 1, optional: true}},
	"vagrant":                       {"ssh": {script: "-c --command", permutes: true, textOnly: true, remote: true}},
	"adb":                           {"shell": remoteShell, "exec-out": remoteShell},
	"limactl":                       {"shell": {operands: 1, remote: true}},
	"wsl":                           {"-e": {}, "--exec": {}, "--": {}},
	"heroku":                        {"run": remoteShell},
	"ip":                            {"netns exec": {operands: 1}, "vrf exec": {operands: 1}, "-n": {operands: 1}},
	"nix-shell":                     {"--run": {joined: true}, "--command": {joined: true}},
	"tmux":                          each(map[string]wrapperSpec{"new new-session neww new-window splitw split-window respawn-pane run run-shell send-keys send": {values: "ceFfnstxylpbN", joined: true}}),
	"screen":                        {"-dm": {values: "SchpTs"}, "-dmS": {operands: 1, values: "chpTs"}, "-S": {operands: 1, values: "chpTs"}},
	"git": {
		"rebase":            {script: "-x --exec", textOnly: true},
		"difftool":          {script: "-x --extcmd", textOnly: true},
		"submodule foreach": {joined: true}, "bisect run": {}, "for-each-repo": {},
	},
	"poetry pipenv hatch pdm rye pipx devbox":                                              {"run": {}},
	"bundle rbenv pyenv nodenv goenv jenv plenv phpenv opam stack cabal composer lerna nx": {"exec": {}},
})

var (
	nixCommand    = wrapperSpec{script: "-c --command"}
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

// otherShells are shells of which not all ways of being given a script are in the tables.
const otherShells = " fish csh tcsh mksh ksh93 yash ash oksh osh posh rbash pwsh powershell "

// beside are programs of the other tables, and git's, with the flags whose value is
// the text of a command that they run.
var beside = each(map[string]string{
	"tar": " --to-command --use-compress-program -I --rsh-command --rmt-command --info-script --new-volume-script -F" +
		" --checkpoint-action ",
	"bsdtar": " --use-compress-program ",
	"split":  " --filter ", "sort": " --compress-program ", "rg": " --pre ", "man": " -P --pager -H --html ",
	"ag": " --pager ", "wget": " --use-askpass ",
	"rsync": " -e --rsh --rsync-path ", "scp": " -S ", "sftp": " -S ", "go": " -exec -toolexec -vettool ",
	"fzf":                   " --preview ",
	"docker podman nerdctl": " --entrypoint ",
	"cargo-watch":           " -s --shell ",
	"nodemon":               " -x --exec ", "zip": " -TT --unzip-command ", "repo": " -c ",
	"git": " --tree-filter --index-filter --msg-filter --env-filter --parent-filter --commit-filter --tag-name-filter" +
		" --setup --upload-pack --receive-pack --upload-archive --open-files-in-pager --extcmd --exec --smtp-server" +
		" --sendmail-cmd --to-cmd --cc-cmd ",
})
