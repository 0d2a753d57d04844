// Programs that show the system, the time and numbers. To be checked against: the
// manual pages of Debian 12 (coreutils 9.1, procps 4.0, util-linux 2.38, iproute2
// 6.1, bash 5.2).
//
// Absent on purpose: whatever asks the network or another process (ping, dig,
// docker, systemctl, gh, kubectl), starts a pager (man, less) or a decompressor
// (tar, zcat, zgrep), or makes a folder for its settings (top).

package shell

import (
	"net/netip"
	"slices"
	"strings"
)

var systemPrograms = ofTexts(each(map[string]*program{
	"sleep":                     {flags: "--help --version", any: true},
	"seq":                       {flags: "-# -w -f: -s: --format: --separator: --equal-width --help --version", any: true},
	"expr":                      {flags: "-# --help --version", any: true},
	"factor":                    {flags: "-h --exponents --help --version", any: true},
	"id":                        {flags: "-agGnruzZ --context --group --groups --name --real --user --zero --help --version", any: true},
	"groups":                    {flags: "--help --version", any: true},
	"who":                       {flags: "-abdHlmpqrstTuw --all --boot --count --heading --users", operands: noOperands},
	"w":                         {flags: "-fhiopsu --short --no-header", operands: noOperands},
	"uname":                     {flags: "-amnoprsvi --all --kernel-name --nodename --kernel-release --kernel-version --machine --operating-system --help --version", operands: noOperands},
	"whoami logname users arch": {flags: "--help --version", operands: noOperands},
	"nproc":                     {flags: "--all --ignore: --help --version", operands: noOperands},
	"tty":                       {flags: "-s --silent --quiet", operands: noOperands},
	"printenv":                  {flags: "-0 --null --help --version", any: true},
	"locale":                    {flags: "-ackv --all-locales --category-name --keyword-name --verbose"},
	"getconf":                   {flags: "-a"},
	"hostname": {
		flags: "-sI --short --all-ip-addresses --version --help", operands: noOperands,
		refused: each(map[string]string{"-F --file": "sets the name", "-f --fqdn -i -d -A -a": "asks the network"}),
	},
	"date": {
		flags:   "-uR -d: -r< -I? --date: --iso-8601? --rfc-email --rfc-3339: --reference< --utc --universal --debug --resolution --help --version",
		refused: each(map[string]string{"-s --set": "sets the clock", "-f --file": "reads a file of dates"}), abbrev: true, check: onlyFormats,
	},
	"cal":  {flags: "-13jmnsSwyY -A: -B: -n: --one --three --sunday --monday --julian --year --twelve --week?"},
	"ncal": {flags: "-13bCehJjMSwy -A: -B: -m: -o: -p: -s: -H: -d:"},
	"ps": {
		flags: "-AaCcdeFfHhjKlLMmNnPrSTvVwXxyZ -C: -G: -g: -O: -o: -p: -q: -s: -t: -U: -u: --Group: --User: --cols: --columns: --cumulative --deselect" +
			" --forest --format: --group: --headers --help? --info --lines: --no-headers --no-heading --noheader --noheaders --pid: --ppid:" +
			" --quick-pid: --rows: --sid: --sort: --tty: --user: --version --width:", any: true,
	},
	"pgrep": {
		flags: "-acfilnovwx -r: -d: -P: -g: -G: -s: -t: -u: -U: -F< -O: --list-name --list-full --full --count --exact --newest --oldest --inverse" +
			" --delimiter: --parent: --pgroup: --group: --session: --terminal: --euid: --uid: --ignore-case --pidfile< --runstates:", any: true,
	},
	"pidof":  {flags: "-csxz -o:", check: plainPIDs},
	"pstree": {flags: "-aAcghGlnNpsStTuUZ -H: -C: --arguments --show-pids --long"},
	"uptime": {flags: "-psV --pretty --since --help --version", operands: noOperands},
	"free":   {flags: "-bkmghlotvLwV -c: -s: --bytes --kilo --mega --giga --kibi --mebi --gibi --human --lohi --total --wide --si --help --version", operands: noOperands},
	"vmstat": {flags: "-adfimnswtVy -S:"},
	"iostat": {flags: "-cdhkmNtxyz"},
	"lscpu":  {flags: "-abcJxBy -e? -p? --all --extended? --parse? --json", operands: noOperands},
	"lsblk":  {flags: "-abdfilJmnpPrStTO -e: -I: -o: -x: --all --bytes --fs --json --list --output: --noheadings --paths --topology"},
	"lsmod":  {operands: noOperands},
	"lsusb":  {flags: "-tv -s: -d:", operands: noOperands},
	"ss": {
		flags: "-aelmnoptuwxs460iHOZzVh --all --listening --numeric --processes --tcp --udp --unix --summary --extended --info", check: forms("it may ask the network for the host in its filter", "", "state *"),
	},
	"netstat":  {flags: "-aeglnoprstuwx46MCFW --all --listening --numeric --tcp --udp --route --interfaces --programs --statistics", operands: noOperands, check: needs("without -n it asks the network for names", "-n --numeric")},
	"ifconfig": {flags: "-as", max: 1},
	"ip":       {flags: "-46sdjpoc --br --brief --color --details --statistics --stats --oneline --json --pretty", style: oneDash, check: ipShows},
	"tput":     {max: 1, check: onlyOperands("cols", "lines", "colors", "longname")},
	"help":     {flags: "-dms"},
	"history":  {max: 1, check: onlyNumbers},
	"lsb_release": {
		flags: "-vidrcas --version --id --description --release --codename --all --short", operands: noOperands,
	},

	"yes": {flags: "--help --version", any: true},
	"dmesg": {
		flags: "-deJkLPprStTux -f: -l: --color? --ctime --decode --facility: --force-prefix --json --kernel --level: --nopager --notime --raw" +
			" --reltime --show-delta --time-format: --userspace --version --help",
		operands: noOperands,
	},
	"findmnt": {
		flags: "-aAbcCDfiJklmnPrRuUvy -d: -M: -N: -o: -O: -S: -t: -T: --all --df --json --list --noheadings --output: --raw --source: --target: --types:",
	},
	"sysctl": {flags: "-abeNnqr --all --names --values --binary --ignore --quiet --pattern:", check: kernelNames},
	"mount":  {flags: "-lV --show-labels --version", operands: noOperands},

	"pip": pip, "pip3": pip,
	"go":      {check: goShows},
	"openssl": {max: 1, check: onlyOperands("version")},
}))

// systemReaders are those of which the operands are files.
var systemReaders = map[string]*program{
	"bc":   {flags: "-lqsw --mathlib --quiet --standard --warn --version --help"},
	"lsof": {flags: "-abChlNnoPRtUwX -c: -d: -F? -g? -i? -p: -s? -u:", check: lsofNumeric},
}

// ofTexts makes the operands of programs texts that are not files, unless the row has it otherwise.
func ofTexts(table map[string]*program) map[string]*program {
	for _, p := range table {
		if p.operands == fileOperands {
			p.operands = textOperands
		}
	}
	return table
}

// pip reads what is installed. Absent: -o, which asks the network.
var pip = &program{
	flags: "-V -f -l -v --version --files --local --user --verbose --exclude: --format: --not-required --disable-pip-version-check",
	check: unless("only `list`, `show` and `--version` are known to be harmless", func(use usage) bool {
		return use.are("list") || use.are("show ...") || use.are("") && use.has("-V --version")
	}),
}

// goShows passes go version, and go env with the names of settings that go
// finds out without running a compiler.
func goShows(use usage) string {
	const settings = " GOARCH GOBIN GOCACHE GOENV GOEXE GOFLAGS GOHOSTARCH GOHOSTOS GOMOD GOMODCACHE GONOPROXY GONOSUMDB GOOS GOPATH GOPRIVATE" +
		" GOPROXY GOROOT GOSUMDB GOTMPDIR GOTOOLCHAIN GOTOOLDIR GOVERSION GOWORK CGO_ENABLED "
	if use.are("version") {
		return ""
	}
	if !use.are("env ...") || len(use.operands) == 1 {
		return "only its version and single settings are known to be harmless"
	}
	for _, w := range use.operands[1:] {
		if !w.in(settings) {
			return "`" + w.Text + "` is not among the settings known to be harmless"
		}
	}
	return ""
}

// onlyFormats: any operand of date but +format sets the clock.
var onlyFormats = eachOperand("an operand without + sets the clock", func(w Word) bool { return strings.HasPrefix(w.prefix, "+") && w.shape <= one })

func kernelNames(use usage) string {
	for _, w := range use.operands {
		switch {
		case !w.Literal || strings.Contains(w.Text, "="):
			return "with = it changes a setting"
		case strings.Contains(w.Text, ".."):
			return "with .. it may read other files"
		}
	}
	return ""
}

var onlyNumbers = eachOperand("only a number is known to be harmless", func(w Word) bool { return isNumber(w.prefix) })

// onlyOperands makes a check that there is exactly one operand, of the list.
func onlyOperands(allowed ...string) func(usage) string {
	return forms("only `"+strings.Join(allowed, "`, `")+"` is known to be harmless", allowed...)
}

// ipShows passes `ip OBJECT [show ...]`, whose further words only choose what
// is shown, and a question for the route to an address.
func ipShows(use usage) string {
	const objects = " a addr address l link r route n neigh ru rule "
	const why = "only showing is known to be harmless"
	words := use.operands
	switch {
	case slices.ContainsFunc(words, func(w Word) bool { return !w.Literal }), len(words) == 0 || !words[0].in(objects):
		return why
	case len(words) == 1, words[1].in(" show list ls "):
		return ""
	case len(words) == 3 && strings.HasPrefix(words[0].Text, "r") && words[1].is("get"):
		if _, err := netip.ParseAddr(words[2].Text); err == nil {
			return ""
		}
	}
	return why
}

// plainPIDs: of any other value pidof complains to the system's log.
var plainPIDs = unless("-o takes the number of a process", func(use usage) bool {
	return !slices.ContainsFunc(use.values("-o"), func(w Word) bool { return !isNumber(w.Text) && w.Text != "%PPID" })
})

// lsofNumeric passes calls that look no host up: with -n or -t nothing is
// printed that needs it, and plain files have none. A host can also be named
// to look for, and some words that begin with + ask others or write.
func lsofNumeric(use usage) string {
	for _, w := range use.values("-i") {
		if !portsOnly(w) {
			return "it asks the network for the host in `" + w.Text + "`"
		}
	}
	files := len(use.operands) > 0 && !use.has("-c -d -g -i -N -p -u -U")
	for _, w := range use.operands {
		switch {
		case w.prefix == "" || w.prefix[0] == '+' && !w.in(" +D +d +c +L +L1 "):
			return "`" + w.Text + "` may be a flag of its own"
		case use.has("-i") && !portsOnly(w):
			return "it asks the network for the host in `" + w.Text + "`"
		}
	}
	if !use.has("-n -t") && !files {
		return "without -n it asks the network for names"
	}
	return ""
}

// portsOnly: [46][protocol][:ports], without a host.
func portsOnly(w Word) bool { return w.shape == known && !strings.Contains(w.prefix, "@") }
