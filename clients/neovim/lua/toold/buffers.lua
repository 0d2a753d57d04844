-- The unsaved texts: the daemon's tools see what the editor shows, and change it here instead of behind the editor's back.
local M = {}

-- A buffer's text is sent so many milliseconds after its last change, and at once before a call of this client.
local pause = 50

---@type toold.Session?
local session
local group = vim.api.nvim_create_augroup("toold_buffers", { clear = true })
---@type table<integer, { path: string, tick: integer }> what was sent of each buffer that is held open at the daemon
local sent = {}
---@type table<integer, boolean> buffers whose changes are listened to
local watched = {}
---@type table<integer, boolean> buffers that wait for the timer
local due = {}
local timer

--- Whether a buffer is the text of a file.
local function is_file(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf):sub(1, 1) == "/"
end

local function line_end(buf)
  return ({ dos = "\r\n", mac = "\r" })[vim.bo[buf].fileformat] or "\n"
end

local mark = "\239\187\191" -- of UTF-8, which the option bomb stands for

--- The lines and the bytes of the text as it would be saved, in UTF-8.
---@return string[] lines
---@return string text
local function text_of(buf)
  local ends = line_end(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  local function bytes() return vim.api.nvim_buf_call(buf, function() return vim.fn.wordcount().bytes end) end
  if #lines == 1 and lines[1] == "" and bytes() == 0 then lines = {} end -- an empty file has no line
  local ended = #lines > 0 and (vim.bo[buf].endofline or (vim.bo[buf].fixendofline and not vim.bo[buf].binary))
  return lines, (vim.bo[buf].bomb and mark or "") .. table.concat(lines, ends) .. (ended and ends or "")
end

--- Sends the text of a modified buffer, and takes back that of one that is not modified any more.
local function offer(buf)
  due[buf] = nil
  if not session then return end
  local before = sent[buf]
  local path = vim.api.nvim_buf_is_valid(buf) and vim.api.nvim_buf_get_name(buf) or nil
  local open = path ~= nil and is_file(buf) and vim.bo[buf].modified
  if before and not (open and before.path == path) then
    session:send({ buffer_closed = { path = before.path } })
    sent[buf], before = nil, nil
  end
  if not open then return end
  local tick = vim.api.nvim_buf_get_changedtick(buf)
  if before and before.tick == tick then return end
  sent[buf] = { path = path, tick = tick }
  session:send({ buffer_changed = { path = path, version = tick, content = select(2, text_of(buf)) } })
end

local function offer_due()
  for buf in pairs(due) do offer(buf) end
end

local function touch(buf)
  due[buf] = true
  if timer then timer:start(pause, 0, vim.schedule_wrap(offer_due)) end
end

local function watch(buf)
  if watched[buf] or not is_file(buf) then return end
  watched[buf] = vim.api.nvim_buf_attach(buf, false, {
    on_lines = function() if not session then watched[buf] = nil return true end touch(buf) end,
    on_changedtick = function() touch(buf) end,
    on_reload = function() touch(buf) end,
    on_detach = function() watched[buf] = nil touch(buf) end,
  })
  touch(buf)
end

--- Begins to offer the unsaved texts to a session.
---@param to toold.Session
function M.start(to)
  session, sent = to, {}
  timer = timer or vim.uv.new_timer()
  vim.api.nvim_clear_autocmds({ group = group })
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufWinEnter", "BufFilePost" }, { group = group, callback = function(args) watch(args.buf) touch(args.buf) end })
  vim.api.nvim_create_autocmd({ "BufModifiedSet", "BufWritePost", "BufUnload" }, { group = group, callback = function(args) touch(args.buf) end })
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do watch(buf) end
  M.offer_all(to)
end

--- Offers every unsaved text now; with a session that has lost them, all of them again.
---@param to toold.Session
function M.offer_all(to)
  if session ~= to then return end
  for buf in pairs(sent) do due[buf] = true end
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do offer(buf) end
  offer_due()
end

--- Stops. The daemon drops the texts with the stream.
function M.stop()
  session, sent, due = nil, {}, {}
  if timer then timer:stop() end
  vim.api.nvim_clear_autocmds({ group = group })
end

--- Makes the buffer's text another one, and touches no more lines than differ.
---@param buf integer
---@param text string as text_of has it
local function become(buf, text)
  local ends, old = line_end(buf), text_of(buf)
  if vim.bo[buf].bomb then
    vim.bo[buf].bomb = vim.startswith(text, mark)
    if vim.bo[buf].bomb then text = text:sub(#mark + 1) end
  end
  local ended = vim.endswith(text, ends)
  local new = text == "" and {} or vim.split(ended and text:sub(1, -#ends - 1) or text, ends, { plain = true })
  local head, tail = 0, 0
  while head < math.min(#old, #new) and old[head + 1] == new[head + 1] do head = head + 1 end
  while tail < math.min(#old, #new) - head and old[#old - tail] == new[#new - tail] do tail = tail + 1 end
  local last = #old == 0 and -1 or #old - tail
  vim.api.nvim_buf_set_lines(buf, head, last, true, vim.list_slice(new, head + 1, #new - tail))
  if #new > 0 then
    vim.bo[buf].endofline = ended
    if not ended then vim.bo[buf].fixendofline = false end
  end
end

--- Makes an edit that a call asks for, if the buffer is as the daemon has it.
---@param to toold.Session
---@param edit table
---@param turn_id string?
function M.edit(to, edit, turn_id)
  local reply = { tool_use_id = edit.tool_use_id, turn_id = turn_id }
  local buf
  for candidate, known in pairs(sent) do
    if known.path == edit.path then buf = candidate end
  end
  local version = tonumber(edit.version)
  if not buf or not vim.api.nvim_buf_is_loaded(buf) then
    reply.error = "The editor does not have the file open."
  elseif vim.api.nvim_buf_get_changedtick(buf) ~= version then
    reply.error = "The text has changed in the editor since it was read."
  elseif not vim.bo[buf].modifiable then
    reply.error = "The editor does not let the buffer be changed."
  else
    local done, why = pcall(function()
      vim.api.nvim_buf_call(buf, function() vim.cmd("let &g:undolevels = &g:undolevels") end) -- the edit is one step to undo
      for _, change in ipairs(edit.edits or {}) do
        local _, text = text_of(buf)
        local from = tonumber(change.offset or 0)
        local after = text:sub(1, from) .. (change.text or "") .. text:sub(from + tonumber(change.length or 0) + 1)
        become(buf, after)
        if select(2, text_of(buf)) ~= after then error("the text after the edit is not the one asked for", 0) end
      end
    end)
    if not done then reply.error = "The editor has failed: " .. tostring(why) end
    sent[buf].tick = vim.api.nvim_buf_get_changedtick(buf)
    reply.version = sent[buf].tick
  end
  to:send({ buffer_edited = reply })
  if buf and reply.error and reply.version then -- what it holds now is told
    sent[buf].tick = -1
    touch(buf)
  end
end

--- Saves what a program of the session would else not see.
---@param to toold.Session
---@param save table
---@param turn_id string?
function M.save(to, save, turn_id)
  local unsaved = {}
  for _, path in ipairs(save.paths or {}) do
    local buf
    for candidate, known in pairs(sent) do
      if known.path == path then buf = candidate end
    end
    local saved = buf and require("toold").config.save and pcall(vim.api.nvim_buf_call, buf, function() vim.cmd("silent write") end)
    if not saved or vim.bo[buf].modified then unsaved[#unsaved + 1] = path end
    if buf then offer(buf) end
  end
  to:send({ buffers_saved = { tool_use_id = save.tool_use_id, turn_id = turn_id, unsaved = unsaved } })
end

return M
