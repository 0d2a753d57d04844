-- A session's Execute stream: what comes is passed on to questions, buffers and tools, and what was asked for is answered.
local buffers = require("toold.buffers")
local questions = require("toold.questions")
local rpc = require("toold.rpc")
local tools = require("toold.tools")

local M = {}

-- How often a lost session is attached again, each try after twice the time of the one before.
local tries, first_wait = 6, 250

---@class toold.Session
---@field id string its name
---@field roots string[]
---@field calls table<string, toold.Call> those that have not ended, and those of this client
---@field private rpc toold.Rpc
---@field private stream integer
---@field private attach table the first message
---@field private closed boolean
---@field private failed integer how often in a row attaching has failed
---@field private turns table<string, toold.Turn>
local Session = {}
Session.__index = Session

---@class toold.Call
---@field turn string the number of its turn
---@field title string
---@field running boolean

---@class toold.Turn
---@field results table<integer, table> by their place
---@field on_end fun(results: table[], turn: table)

---@param options table see toold.attach
---@param on_attached fun(session: toold.Session?, why: string?)
---@return toold.Session?
function M.open(options, on_attached)
  local self = setmetatable({ calls = {}, turns = {}, failed = 0, roots = {}, closed = false, on_attached = on_attached }, Session)
  local config = require("toold").config
  local why
  self.rpc, why = rpc.start(vim.list_extend(vim.list_slice(config.command), { "stdio" }), {
    on_state = function(_, state) if state ~= "attached" then buffers.offer_all(self) end end,
    on_exit = function(text) self:lost(text) end,
  })
  if not self.rpc then
    on_attached(nil, why)
    return nil
  end
  self.attach = {
    session_id = options.session,
    role = options.main and "ROLE_MAIN" or "ROLE_COMPANION",
    roots = options.roots or { vim.fn.getcwd() },
    client = { name = "neovim-toold", version = tostring(vim.version()) },
    capabilities = { answers = true, buffers = true, file_changes = true, native_results = true, no_structured = true },
    client_tools = tools.definitions(config),
    options = options.main and { permission_mode = options.mode, settings_json = options.settings } or nil,
  }
  self:join()
  return self
end

---@private
function Session:join()
  self.stream = self.rpc:request("ToolService/Execute", { attach = self.attach }, function(_, failure)
    self:lost(failure and failure.message or "the stream has ended", failure)
  end, function(event) self:take(event) end)
end

---@private
function Session:lost(why, failure)
  if self.closed then return end
  questions.withdraw_all()
  buffers.stop()
  local known = self.id ~= nil
  local gone = failure and failure.data and vim.list_contains({ "NOT_FOUND", "INVALID_ARGUMENT", "PERMISSION_DENIED", "FAILED_PRECONDITION" }, failure.data.status)
  self.failed = self.failed + 1
  if failure and failure.data and failure.data.status == "OUT_OF_RANGE" then -- records are lost: on from what there is
    self.attach.after_seq = nil
    self:give_up(why)
  end
  if not known or gone or self.failed > tries or not self.rpc.process then
    self.closed = true
    self.rpc:close()
    if known then vim.notify("toold: detached: " .. why, vim.log.levels.WARN) end
    self:give_up(why)
    if self.on_attached then self.on_attached(nil, why) end
    if require("toold").session == self then require("toold").session = nil end
    return
  end
  vim.defer_fn(function() if not self.closed then self:join() end end, first_wait * 2 ^ (self.failed - 1))
end

--- What waits for a turn is told that it does not come.
---@private
function Session:give_up(why)
  local turns = self.turns
  self.turns = {}
  for _, turn in pairs(turns) do turn.on_end({}, { error = why }) end
end

---@private
function Session:take(event)
  if event.seq then self.attach.after_seq = event.seq end
  for kind, handle in pairs(Session.events) do
    if event[kind] then handle(self, event[kind], event) end
  end
end

-- What is done with each kind of event.
Session.events = {
  attached = function(self, attached)
    local again = self.id ~= nil
    self.id, self.roots, self.failed = attached.session_id, attached.roots or {}, 0
    self.attach.session_id = self.id
    for _, warning in ipairs(again and {} or attached.warnings or {}) do vim.notify("toold: " .. warning, vim.log.levels.WARN) end
    buffers.start(self)
    if self.on_attached then
      local done = self.on_attached
      self.on_attached = nil
      done(self)
    end
  end,
  accepted = function(self, accepted, event) self.calls[accepted.tool_use_id] = { turn = event.turn, title = accepted.title or accepted.name, running = false } end,
  started = function(self, started)
    local call = self.calls[started.tool_use_id]
    if call then call.running = true end
  end,
  question = function(self, question) questions.ask(self, question) end,
  question_withdrawn = function(_, withdrawn) questions.withdraw(withdrawn.question_id) end,
  tool_result = function(self, result, event)
    self.calls[result.tool_use_id] = nil
    local turn = self.turns[event.turn_id or ""]
    if turn then turn.results[#turn.results + 1] = result end
    vim.cmd.checktime()
  end,
  turn_ended = function(self, ended, event)
    local turn = self.turns[event.turn_id or ""]
    if not turn then return end
    self.turns[event.turn_id] = nil
    table.sort(turn.results, function(a, b) return (a.index or 0) < (b.index or 0) end)
    turn.on_end(turn.results, ended)
  end,
  client_tool_use = function(self, use, event) tools.run(self, use, event.turn_id) end,
  client_tool_cancel = function(_, cancel) tools.cancel(cancel.tool_use_id) end,
  buffer_edit = function(self, edit, event) buffers.edit(self, edit, event.turn_id) end,
  save_buffers = function(self, save, event) buffers.save(self, save, event.turn_id) end,
  notice = function(_, notice)
    if notice.code == "file_changed" or notice.code == "buffer_conflict" then
      vim.cmd.checktime()
    else
      vim.notify("toold: " .. notice.message, vim.log.levels.WARN)
    end
  end,
  session_changed = function(self, changed)
    if not changed.closed then return end
    vim.notify("toold: the session was closed", vim.log.levels.WARN)
    self:close()
  end,
}

--- Sends a message on the stream.
---@param message table an ExecuteRequest
function Session:send(message) self.rpc:send(self.stream, message) end

--- Runs what a model's whole message asks for, of Anthropic's Messages or OpenAI's Chat Completions or Responses.
---@param message table|string as the API returned it
---@param on_end fun(items: table[], turn: table) the items to append to the conversation, in the order of the calls
function Session:run(message, on_end)
  local id = ("neovim-%s"):format(vim.fn.sha256(vim.uv.hrtime() .. vim.fn.getpid()):sub(1, 16))
  buffers.offer_all(self)
  self.turns[id] = { results = {}, on_end = function(results, turn)
    on_end(vim.tbl_map(function(result) return vim.json.decode(result.native_json) end, results), turn)
  end }
  self:send({ model_event = { turn_id = id, json = type(message) == "string" and message or vim.json.encode(message) } })
end

--- Runs one call.
---@param name string of the tool
---@param input table
---@param on_result fun(result: table) a ToolResult
function Session:call(name, input, on_result)
  local id = ("neovim-%s"):format(vim.fn.sha256(vim.uv.hrtime() .. vim.fn.getpid()):sub(1, 16))
  buffers.offer_all(self)
  self.turns[id] = { results = {}, on_end = function(results, turn)
    on_result(results[1] or { outcome = "OUTCOME_ERROR", is_error = true, content = { { text = turn.error or "The call was not taken." } } })
  end }
  self:send({ tool_use = { id = id, turn_id = id, name = name, input_json = vim.json.encode(next(input) and input or vim.empty_dict()) } })
  self:send({ end_turn = { turn_id = id } })
end

--- Stops every call of the session.
function Session:cancel(on_reply)
  self.rpc:request("SessionService/CancelTurn", { session_id = self.id, all = true, reason = "The user stopped it in the editor." }, on_reply or function() end)
end

--- A method of the daemon that answers once.
---@param method string
---@param params table
---@param on_reply fun(result: table?, failure: toold.Failure?)
function Session:request(method, params, on_reply) self.rpc:request(method, params, on_reply) end

--- One short text for a status line.
---@return string
function Session:status()
  if not self.id then return "toold …" end
  local text, open = { "toold" }, vim.tbl_count(self.calls)
  if open > 0 then text[#text + 1] = ("%d running"):format(open) end
  if questions.count() > 0 then text[#text + 1] = ("%d to answer"):format(questions.count()) end
  return table.concat(text, " · ")
end

--- Detaches.
function Session:close()
  if self.closed then return end
  self.closed = true
  questions.withdraw_all()
  buffers.stop()
  self:give_up("detached")
  if require("toold").session == self then require("toold").session = nil end
  self.rpc:finish(self.stream)
  self.rpc:close()
end

return M
