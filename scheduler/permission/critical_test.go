package permission_test

import (
	"testing"

	"github.com/toold/toold/scheduler/permission"
	"github.com/toold/toold/tools/shell"
)

// TestCritical only parses the commands; none of them runs.
func TestCritical(t *testing.T) {
	around := permission.Around{Dir: "/home/u/work/app/sub", Home: "/home/u", Roots: []string{"/home/u/work/app"}}
	for command, want := range map[string]bool{
		"rm -rf /":                           true,
		"rm -rf /usr":                        true,
		"rm -rf /usr/local/x":                false,
		"rm -rf ~":                           true,
		"rm -rf ~/":                          true,
		"rm -rf ~/work":                      true,
		"rm -rf ~/work/other":                false,
		"rm -rf ..":                          true,
		"rm -rf ../sub":                      false,
		"rm -rf .":                           false,
		"rm -rf build":                       false,
		`rm -rf "$DIR"/*`:                    true,
		"rm -rf $DIR/x":                      true,
		"rm -rf /*":                          true,
		"sudo rm -rf /home":                  true,
		"true && timeout 5 rm -r /etc":       true,
		"bash -c 'rm -rf /opt'":              true,
		"echo $(rm -rf /var)":                true,
		"chmod -R 777 /":                     true,
		"chmod 755 /usr":                     false,
		"chown --recursive me /home/u":       true,
		"find / -name x -delete":             true,
		"find . -name '*.o' -delete":         false,
		"dd if=/dev/zero of=/dev/sda":        true,
		"dd if=a of=/dev/null":               false,
		"mkfs.ext4 /dev/sda1":                true,
		"shutdown now":                       true,
		"systemctl reboot":                   true,
		"systemctl status nginx":             false,
		"echo rm -rf /":                      false,
		"git commit -m 'rm -rf /'":           false,
		"for d in a b; do rm -rf /srv; done": true,
	} {
		got := permission.Critical(shell.Analyze(command).Commands, around)
		if (got != "") != want {
			t.Errorf("%s: %q, want critical %v", command, got, want)
		}
	}
}
