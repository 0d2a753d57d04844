-- toold for Neovim: what a user sets, and the session that the editor is attached to.
local M = {}

---@class toold.Config
---@field command string[] the program and its arguments
---@field save boolean modified buffers are saved before a program of the session runs
---@field diagnostics boolean the session gets the tool getDiagnostics
---@field selection boolean the session gets the tool getSelection
---@field diff boolean the session gets the tool openDiff
---@field attach boolean attach when Neovim starts, if a session runs here
M.config = { command = { "toold" }, save = true, diagnostics = true, selection = true, diff = true, attach = false }

---@type toold.Session?
M.session = nil

--- Sets what is to differ from M.config. Needed only for that.
---@param options table?
function M.setup(options)
  M.config = vim.tbl_deep_extend("force", M.config, options or {})
  if M.config.attach then
    vim.schedule(function() require("toold.command").run({ "attach", "?" }) end)
  end
end

--- Attaches the editor: it answers the session's questions, offers the unsaved texts and its own tools. Detaches from
--- another session.
---@param options { session: string?, main: boolean?, roots: string[]?, mode: string?, settings: string? }
---  session: its name; empty: a new one. main: this editor sends tool uses itself; else it stands beside the client that does
---@param on_attached fun(session: toold.Session?, why: string?)?
function M.attach(options, on_attached)
  M.detach()
  M.session = require("toold.session").open(options, function(session, why)
    if not session then M.session = nil end
    if on_attached then on_attached(session, why) end
  end)
end

--- Detaches. A session with a name goes on.
function M.detach()
  if M.session then M.session:close() end
  M.session = nil
end

--- One short text for a status line; empty while nothing is attached.
---@return string
function M.status() return M.session and M.session:status() or "" end

return M
