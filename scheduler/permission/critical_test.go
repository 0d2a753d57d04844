package permission_test

import (
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/shell"
)

// TestCritical only parses the commands; none of them runs.
func TestCritical(t *testing.T) {
	around := permission.Around{Dir: "/home/u/work/app/sub", Home: "/home/u", Roots: []string{"/home/u/work/app"}}
	for command, want := range map[string]bool{
		"rm -rf /":                                  true,
		"rm -rf /usr":                               true,
		"rm -rf /usr/local/x":                       false,
		"rm -rf ~":                                  true,
		"rm -rf ~/":                                 true,
		"rm -rf ~/work":                             true,
		"rm -rf ~/work/other":                       false,
		"rm -rf ..":                                 true,
		"rm -rf ../sub":                             false,
		"rm -rf .":                                  false,
		"rm -rf build":                              false,
		`rm -rf "$DIR"/*`:                           true,
		"rm -rf $DIR/x":                             true,
		"rm -rf /*":                                 true,
		"sudo rm -rf /home":                         true,
		"true && timeout 5 rm -r /etc":              true,
		"bash -c 'rm -rf /opt'":                     true,
		"echo $(rm -rf /var)":                       true,
		"chmod -R 777 /":                            true,
		"chmod 755 /usr":                            false,
		"chown --recursive me /home/u":              true,
		"find / -name x -delete":                    true,
		"find . -name '*.o' -delete":                false,
		"dd if=/dev/zero of=/dev/sda":               true,
		"dd if=a of=/dev/null":                      false,
		"mkfs.ext4 /dev/sda1":                       true,
		"shutdown now":                              true,
		"systemctl reboot":                          true,
		"systemctl status nginx":                    false,
		"echo rm -rf /":                             false,
		"git commit -m 'rm -rf /'":                  false,
		"for d in a b; do rm -rf /srv; done":        true,
		"rm -rf $HOME":                              true,
		"rm -rf ~root":                              true,
		"rm -rf ~/.*":                               true,
		"rm -rf ~/.[!.]*":                           true,
		"rm -rf /$X":                                true,
		"rm -rf /{bin,etc}":                         true,
		"rm -rf {/bin,/etc}":                        true,
		"chmod -R 777 /{etc,usr}":                   true,
		"cd / ; rm -rf etc":                         true,
		"cd /usr; rm -rf ../etc":                    true,
		"cd ..; rm -rf ../app":                      true,
		"find / -exec /bin/rm {} \\;":               true,
		"find / -exec sh -c 'rm $1' _ {} \\;":       true,
		"find . -name '*.pyc' -delete":              false,
		"sgdisk -Z /dev/sda":                        true,
		"dd if=x of=$DEV":                           true,
		"echo b > /proc/sysrq-trigger":              true,
		"systemctl start poweroff.target":           true,
		"loginctl poweroff":                         true,
		"mv ~ /tmp/x":                               true,
		"mv a b":                                    false,
		`rm -rf "$PWD/build"`:                       false,
		`rm -rf "$(pwd)/build"`:                     false,
		`rm -rf "${DIR:?}/x"`:                       false,
		`rm -rf "${HOME:?}"`:                        true,
		"rm -rf build/$X":                           false,
		`rm -rf "${HOME}"`:                          true,
		"rm -rf $X":                                 false,
		"rm -rf *.o":                                false,
		"cd .. && rm -rf *":                         false, // where it runs is not known
		"find / -name x -exec rm {} ;":              true,
		"find . -name x -exec rm {} ;":              false,
		"shred /dev/sda":                            true,
		"dd if=x of=/dev/sd$x":                      true,
		"cat image > /dev/sda":                      true,
		"echo >> ../../../../../dev/nvme0n1":        true,
		"cp image /dev/sdb":                         true,
		"tee /dev/mapper/root":                      true,
		"echo x > /dev/null 2> /dev/full":           false,
		"echo x > /dev/tty":                         false,
		"echo x > /dev/shm/x":                       false,
		"cat /dev/sda > image":                      false,
		":(){ :|:& };:":                             true,
		":(){ :|: & }; :":                           true,
		"bash -c 'b() { b | b; }; b'":               true,
		"function f { f & f; }":                     true,
		"f() { [ $1 = 0 ] || f $(($1-1)); }":        false,
		"f() { g & }; g() { true; }; f":             false,
		"f() { ls | while read d; do f $d; done; }": false,
	} {
		found := shell.Analyze(command)
		effects := tools.Effects{Commands: found.Commands}
		for _, name := range found.Writes {
			effects.Writes = append(effects.Writes, tools.Path{Name: name})
		}
		got := permission.Critical(effects, around)
		if (got != "") != want {
			t.Errorf("%s: %q, want critical %v", command, got, want)
		}
	}
}

// In a root itself, what stands for everything in it is the root.
func TestCriticalInARoot(t *testing.T) {
	around := permission.Around{Dir: "/w/app", Home: "/home/u", Roots: []string{"/w/app"}}
	for command, want := range map[string]bool{
		"rm -rf *": true, "rm -rf ./*": true, "rm -rf $PWD": true, "rm -rf .": true, "rm -rf build/*": false, "rm *.o": false,
	} {
		got := permission.Critical(tools.Effects{Commands: shell.Analyze(command).Commands}, around)
		if (got != "") != want {
			t.Errorf("%s: %q, want critical %v", command, got, want)
		}
	}
}
