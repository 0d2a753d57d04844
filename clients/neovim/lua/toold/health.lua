-- :checkhealth toold
local M = {}

function M.check()
  local health, config = vim.health, require("toold").config
  health.start("toold")
  if vim.fn.has("nvim-0.10") == 1 then health.ok("Neovim " .. tostring(vim.version())) else health.error("Neovim is older than 0.10") end
  local function run(...)
    local started, process = pcall(vim.system, vim.list_extend(vim.list_slice(config.command), { ... }), { text = true })
    return started and process:wait(10000) or { code = 127, stdout = "", stderr = tostring(process) }
  end
  local version = run("--version")
  if version.code ~= 0 then
    health.error(("`%s` cannot be run: %s"):format(table.concat(config.command, " "), vim.trim(version.stderr)), { "Install toold, and put it on PATH or into require('toold').setup({ command = … })." })
    return
  end
  health.ok(vim.trim(version.stdout))
  local status = run("status")
  if status.code == 0 then health.ok(vim.split(vim.trim(status.stdout), "\n")[1]) else health.warn("no daemon runs; the first attach starts it") end
  local session = require("toold").session
  if session and session.id then health.ok("attached to " .. session.id) else health.info("not attached to a session: `:Toold attach`") end
  if not vim.o.autoread then health.warn("'autoread' is off, so files that calls change ask before they are loaded again", { ":set autoread" }) end
end

return M
