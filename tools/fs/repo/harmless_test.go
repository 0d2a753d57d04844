package repo

import "testing"

// TestHarmless: the settings by which git, or a program that works with it, comes to run a program are not harmless, those that
// no version of git has today included.
func TestHarmless(t *testing.T) {
	for _, file := range []string{
		"[core]hooksPath=x", "[core]fsmonitor=x", "[core]sshCommand=x", "[core]editor=x", "[core]pager=x", "[core]askPass=x", "[core]gitProxy=x",
		"[core]attributesFile=x", "[core]excludesFile=x", "[core]alternateRefsCommand=x", "[core]worktree=x", "[core]commentChar=x", "[core]protectNTFS=false",
		"[sequence]editor=x", "[pager]log=x", "[pager]x", "[alias]st=status", "[alias \"a\"]command=x", "[include]path=x", "[includeIf \"gitdir:/\"]path=x",
		"[includeIf \"onbranch:x\"]path=x", "[includeIf \"hasconfig:remote.*.url:x\"]path=x", "[INCLUDE]PATH=x", "[credential]helper=x",
		"[credential \"https://x\"]helper=x", "[url \"ext::x\"]insteadOf=y", "[url \"x\"]pushInsteadOf=y", "[protocol]allow=always",
		"[protocol \"ext\"]allow=always", "[uploadpack]packObjectsHook=x", "[receive]procReceiveRefs=x", "[gpg]program=x", "[gpg \"ssh\"]program=x",
		"[gpg \"ssh\"]defaultKeyCommand=x", "[diff]external=x", "[diff \"x\"]textconv=x", "[diff \"x\"]command=x", "[diff]orderFile=x", "[merge \"x\"]driver=x",
		"[merge]tool=x", "[mergetool \"x\"]cmd=x", "[mergetool \"x\"]path=x", "[difftool \"x\"]cmd=x", "[filter \"x\"]clean=x", "[filter \"x\"]smudge=x",
		"[filter \"x\"]process=x", "[filter \"x\"]required", "[trailer \"x\"]cmd=x", "[trailer \"x\"]command=x", "[interactive]diffFilter=x",
		"[remote \"x\"]uploadpack=x", "[remote \"x\"]receivepack=x", "[remote \"x\"]vcs=x", "[remote \"X\"]VCS=x", "[remote.x]vcs=x", "[remote \"x\"]proxy=x",
		"[remote \"x\"]url=ext::sh -c x", "[remote \"x\"]url=\" ext::x\"", "[remote \"x\"]pushurl=ext::x", "[remote]pushDefault=ext::x", "[branch \"x\"]remote=ext::x",
		"[submodule \"x\"]update=!x", "[submodule \"x\"]url=ext::x", "[hook \"x\"]command=x", "[hook \"x\"]event=post-commit", "[hook]jobs=1", "[tar \"x\"]command=x",
		"[sendemail]smtpServer=/x", "[imap]tunnel=x", "[man \"x\"]cmd=x", "[browser \"x\"]cmd=x", "[web]browser=x", "[help]browser=x", "[instaweb]httpd=x",
		"[guitool \"x\"]cmd=x", "[init]templateDir=x", "[ssh]variant=x", "[http]proxy=x", "[http]sslCert=x", "[safe]bareRepository=all", "[index]fsmonitor=x",
		"[maintenance]repo=x", "[lfs]customTransfer=x", "[lfs \"customtransfer.x\"]path=x", "[lfs \"extension.x\"]clean=x", "[annex]x=y", "[commit]template=x",
		"[bundle]uri=x", "[fetch]bundleURI=x", "[svn-remote \"x\"]url=x", "[blame]ignoreRevsFile=x", "[mailmap]file=x", "[unknown]x=y", "x=y",
	} {
		settings, err := ParseConfig([]byte(file))
		if err != nil || len(settings) != 1 || settings[0].harmless() {
			t.Errorf("%s counts as harmless: %+v, %v", file, settings, err)
		}
	}
}
