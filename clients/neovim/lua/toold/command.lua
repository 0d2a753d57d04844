-- :Toold and what belongs to it.
local toold = require("toold")

local M = {}

local function say(text, level) vim.notify("toold: " .. text, level or vim.log.levels.INFO) end

--- The session, or nil with a word to the user.
local function attached()
  if toold.session and toold.session.id then return toold.session end
  say("not attached: `:Toold attach`", vim.log.levels.WARN)
end

--- Runs the program and shows what it prints in a window of its own.
local function show(arguments, filetype)
  local command = vim.list_extend(vim.list_slice(toold.config.command), arguments)
  vim.system(command, { text = true, env = { NO_COLOR = "1" } }, vim.schedule_wrap(function(done)
    local text = vim.trim(done.stdout) ~= "" and done.stdout or done.stderr
    if vim.trim(text) == "" then return say("nothing to show") end
    vim.cmd("botright new")
    local buf = vim.api.nvim_get_current_buf()
    vim.api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(text:gsub("\n$", ""), "\n"))
    vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].modifiable, vim.bo[buf].filetype = "nofile", "wipe", false, filetype or ""
    vim.keymap.set("n", "q", "<cmd>close<cr>", { buffer = buf })
  end))
end

local function attach_to(name)
  toold.attach({ session = name }, function(session, why)
    if session then say("attached to " .. session.id) else say(why or "cannot attach", vim.log.levels.ERROR) end
  end)
end

--- The running sessions that have this directory among their roots, or are below it.
---@param on_list fun(sessions: table[]?, why: string?)
local function sessions_here(on_list)
  local here = vim.uv.fs_realpath(vim.fn.getcwd()) or vim.fn.getcwd()
  vim.system(vim.list_extend(vim.list_slice(toold.config.command), { "sessions", "--json" }), { text = true }, vim.schedule_wrap(function(done)
    if done.code ~= 0 then return on_list(nil, vim.trim(done.stderr)) end
    local found = {}
    for _, session in ipairs(vim.json.decode(done.stdout).sessions or {}) do
      for _, root in ipairs(session.roots or {}) do
        if vim.startswith(here .. "/", root .. "/") or vim.startswith(root .. "/", here .. "/") then
          found[#found + 1] = session
          break
        end
      end
    end
    on_list(found)
  end))
end

---@type table<string, fun(argument: string?)>
local commands = {}

--- Without a name: the session that runs here, or one of them. With "?": not a word if there is none.
function commands.attach(name)
  if name and name ~= "?" then return attach_to(name) end
  sessions_here(function(found, why)
    if not found then return say(why or "cannot list sessions", vim.log.levels.ERROR) end
    if #found == 0 then return name == "?" or say("no session runs here. `:Toold attach NAME` makes one, for a client that takes its name") end
    if #found == 1 then return attach_to(found[1].session_id) end
    vim.ui.select(found, { prompt = "Session", format_item = function(s)
      return ("%s  %s  %s"):format(s.session_id, s.client and s.client.name or "", s.working_directory or "")
    end }, function(choice) if choice then attach_to(choice.session_id) end end)
  end)
end

function commands.detach() toold.detach() end
function commands.answer() require("toold.questions").focus() end

function commands.log()
  local session = attached()
  if session then show({ "log", "--session", session.id }) end
end

function commands.diff(call)
  local session = attached()
  if session then show(vim.list_extend({ "diff", "--session", session.id }, { call }), "diff") end
end

--- Shows what would be put back, and asks.
function commands.undo(call)
  local session = attached()
  if not session then return end
  local undo = vim.list_extend(vim.list_slice(toold.config.command), { "undo", "--session", session.id })
  if call then undo[#undo + 1] = call end
  local function run(flag, on_done)
    vim.system(vim.list_extend(vim.list_slice(undo), { flag }), { text = true, env = { NO_COLOR = "1" } }, vim.schedule_wrap(on_done))
  end
  run("--dry-run", function(preview)
    local text = vim.trim(preview.stdout .. preview.stderr)
    if preview.code ~= 0 then return say(text, vim.log.levels.ERROR) end
    vim.ui.select({ "put back", "leave" }, { prompt = text }, function(choice)
      if choice ~= "put back" then return end
      run("--yes", function(done)
        vim.cmd.checktime()
        say(vim.trim(done.stdout .. done.stderr), done.code ~= 0 and vim.log.levels.ERROR or nil)
      end)
    end)
  end)
end

--- Lists the background tasks; the one that is chosen is ended.
function commands.tasks()
  local session = attached()
  if not session then return end
  session:request("SessionService/GetSession", { session_id = session.id }, function(found, failure)
    if failure then return say(failure.message, vim.log.levels.ERROR) end
    local tasks = found.session.background_tasks or {}
    if #tasks == 0 then return say("no background tasks") end
    vim.ui.select(tasks, { prompt = "End a background task", format_item = function(task) return ("%s  %s  %s"):format(task.task_id, task.age or "", task.command) end }, function(task)
      if not task then return end
      session:request("SessionService/KillTask", { session_id = session.id, task_id = task.task_id }, function(_, wrong)
        if wrong then say(wrong.message, vim.log.levels.ERROR) end
      end)
    end)
  end)
end

--- Stops one call, or all.
function commands.cancel(call)
  local session = attached()
  if not session then return end
  local function told(_, failure)
    if failure then say(failure.message, vim.log.levels.ERROR) end
  end
  if call then
    session:request("SessionService/CancelCall", { session_id = session.id, tool_use_id = call, turn = (session.calls[call] or {}).turn }, told)
  else
    session:cancel(told)
  end
end

--- Runs :Toold.
---@param arguments string[]
function M.run(arguments)
  local command = commands[arguments[1]]
  if not command then return say("`:Toold " .. table.concat(vim.fn.sort(vim.tbl_keys(commands)), "|") .. "`", vim.log.levels.WARN) end
  command(arguments[2])
end

--- Completes :Toold.
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line, "%s+")
  local candidates = {}
  if #words <= 2 then
    candidates = vim.tbl_keys(commands)
  elseif words[2] == "cancel" and toold.session then
    candidates = vim.tbl_keys(toold.session.calls)
  end
  table.sort(candidates)
  return vim.tbl_filter(function(word) return vim.startswith(word, lead) end, candidates)
end

return M
