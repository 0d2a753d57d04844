-- The editor's own tools, which every client of the session may call: its diagnostics, its selection, a diff to accept.
local M = {}

--- What is to be done when a call is stopped.
---@type table<string, fun()>
local running = {}

local function text(words) return { content = { { text = words } } } end
local function wrong(words) return { content = { { text = words } }, is_error = true } end

local severities = { "error", "warning", "info", "hint" }

local function diagnostics(input)
  local buf
  if input.path then
    buf = vim.fn.bufnr(vim.fn.fnamemodify(input.path, ":p"))
    if buf < 0 then return wrong(("The editor does not have %s open."):format(input.path)) end
  end
  local lines = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do
    lines[#lines + 1] = ("%s:%d:%d: %s: %s%s"):format(vim.api.nvim_buf_get_name(d.bufnr), d.lnum + 1, d.col + 1, severities[d.severity] or "error",
      d.message, d.source and (" [%s]"):format(d.source) or "")
  end
  table.sort(lines)
  return text(#lines > 0 and table.concat(lines, "\n") or "No diagnostics.")
end

local function selection()
  local mode = vim.fn.mode()
  local visual = mode:match("[vV\22]") ~= nil
  local kind = visual and mode or vim.fn.visualmode()
  local buf = vim.api.nvim_get_current_buf()
  local from, to = visual and vim.fn.getpos("v") or vim.fn.getpos("'<"), visual and vim.fn.getpos(".") or vim.fn.getpos("'>")
  local name = vim.api.nvim_buf_get_name(buf)
  if from[2] == 0 or to[2] == 0 then return text(("Nothing is selected. The cursor is at %s:%d."):format(name, vim.fn.line("."))) end
  local lines = vim.fn.getregion(from, to, { type = kind ~= "" and kind or "v" })
  return text(("%s:%d-%d\n%s"):format(name, math.min(from[2], to[2]), math.max(from[2], to[2]), table.concat(lines, "\n")))
end

--- Opens a file beside what it could become. :write takes the right side over, closing it does not.
local function diff(input, done)
  vim.cmd.tabnew(vim.fn.fnameescape(input.path))
  local tab = vim.api.nvim_get_current_tabpage()
  vim.cmd.diffthis()
  vim.cmd("rightbelow vnew")
  local buf = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_name(buf, ("%s (proposed %d)"):format(input.path, buf))
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(input.content:gsub("\n$", ""), "\n"))
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].modified = "acwrite", "wipe", false
  vim.bo[buf].filetype = vim.filetype.match({ filename = input.path }) or ""
  vim.cmd.diffthis()
  local function finish(result)
    if not done then return end
    local tell = done
    done = nil
    tell(result)
    vim.schedule(function()
      if vim.api.nvim_tabpage_is_valid(tab) and #vim.api.nvim_list_tabpages() > 1 then vim.cmd.tabclose(vim.api.nvim_tabpage_get_number(tab)) end
      if vim.api.nvim_buf_is_valid(buf) then vim.api.nvim_buf_delete(buf, { force = true }) end
    end)
  end
  vim.api.nvim_create_autocmd("BufWriteCmd", { buffer = buf, callback = function()
    local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
    vim.bo[buf].modified = false
    finish(text("The user accepted this text, which is not written yet:\n" .. table.concat(lines, "\n") .. "\n"))
  end })
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buf, callback = function() finish(text("The user rejected the change.")) end })
  return function() finish(wrong("The call was stopped.")) end
end

local all = {
  getDiagnostics = {
    setting = "diagnostics",
    description = "What language servers and linters say in the user's editor, one a line: file, line, column, severity, message.",
    schema = { type = "object", properties = { path = { type = "string", description = "Of this file only; all open files without it." } }, additionalProperties = false },
    run = function(input, done) done(diagnostics(input)) end,
  },
  getSelection = {
    setting = "selection",
    description = "The text that the user has selected in the editor, with its file and lines.",
    schema = { type = "object", properties = vim.empty_dict(), additionalProperties = false },
    run = function(_, done) done(selection()) end,
  },
  openDiff = {
    setting = "diff",
    description = "Shows the user a file beside what it could become. The user may change the proposal; the answer has the text that was accepted, or says that it was rejected. Writes nothing.",
    schema = {
      type = "object", required = { "path", "content" }, additionalProperties = false,
      properties = { path = { type = "string", description = "Absolute." }, content = { type = "string", description = "The whole proposed text." } },
    },
    run = diff,
  },
}

--- The tools as Attach has them.
---@param config toold.Config
---@return table[]
function M.definitions(config)
  local list = {}
  for name, tool in vim.spairs(all) do
    if config[tool.setting] then
      list[#list + 1] = { name = name, description = tool.description, input_schema_json = vim.json.encode(tool.schema), read_only = true }
    end
  end
  return list
end

--- Runs a call of one of them, and sends its result.
---@param session toold.Session
---@param use table
---@param turn_id string?
function M.run(session, use, turn_id)
  local function done(result)
    running[use.tool_use_id] = nil
    session:send({ client_tool_result = vim.tbl_extend("force", { tool_use_id = use.tool_use_id, turn_id = turn_id }, result) })
  end
  local tool = all[use.name]
  if not tool then return done(wrong("The editor does not have this tool.")) end
  local ran, stop = pcall(tool.run, vim.json.decode(use.input_json or "{}"), done)
  if not ran then return done(wrong("The editor has failed: " .. tostring(stop))) end
  running[use.tool_use_id] = type(stop) == "function" and stop or nil
end

--- Stops a call.
---@param id string
function M.cancel(id)
  local stop = running[id]
  running[id] = nil
  if stop then stop() end
end

return M
