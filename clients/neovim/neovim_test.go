// Package neovim_test runs the plugin's tests in a real Neovim against the real daemon.
package neovim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toold/toold/clients/clienttest"
)

func TestNeovim(t *testing.T) {
	nvim := neovim(t)
	env := clienttest.Place(t)
	clienttest.Run(t, env, nvim, "-u", "NONE", "-i", "NONE", "--headless", "-l", "test/run.lua")
}

// neovim returns a Neovim of at least 0.10: the machine's own, or the one that "make clients" unpacks.
func neovim(t *testing.T) string {
	t.Helper()
	unpacked, err := filepath.Abs("../../.bin/neovim/nvim")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"nvim", unpacked} {
		cmd := exec.CommandContext(t.Context(), program, "--clean", "--headless", "-c", "if has('nvim-0.10') | quit | else | cquit | endif")
		cmd.Env = os.Environ()
		for _, variable := range []string{"TMPDIR", "HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"} {
			cmd.Env = append(cmd.Env, variable+"="+t.TempDir()) // it leaves nothing in the user's folders
		}
		if cmd.Run() == nil {
			return program
		}
	}
	clienttest.Lacking(t, `Neovim 0.10 or newer, which "make clients" unpacks on Debian`)
	return ""
}
