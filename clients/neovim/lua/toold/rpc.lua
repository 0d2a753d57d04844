-- JSON-RPC with `toold stdio`: one child process, requests with an answer, notifications.
local M = {}

--- A child process that speaks JSON-RPC, a line a message.
---@class toold.Rpc
---@field private process vim.SystemObj?
---@field private rest string what has come of the line that is not whole yet
---@field private last integer the last request's id
---@field private waiting table<integer, toold.Request>
---@field private on_state fun(id: integer, state: string, epoch: string)
---@field private on_exit fun(text: string)
---@field private stderr string
local Rpc = {}
Rpc.__index = Rpc

---@class toold.Request
---@field on_reply fun(result: table?, failure: toold.Failure?) called once
---@field on_message fun(message: table)? called for each message of a stream

---@class toold.Failure
---@field code integer of gRPC, or of JSON-RPC below 0
---@field message string for a person
---@field data { status: string?, reason: string? }?

--- Starts the process. Callbacks come on the main loop, in the order of the lines.
---@param command string[]
---@param handlers { on_state: fun(id: integer, state: string, epoch: string), on_exit: fun(text: string), cwd: string? }
---@return toold.Rpc? rpc nil if the program cannot be started
---@return string? why
function M.start(command, handlers)
  local self = setmetatable({ rest = "", last = 0, waiting = {}, stderr = "", on_state = handlers.on_state, on_exit = handlers.on_exit }, Rpc)
  local started, process = pcall(vim.system, command, {
    cwd = handlers.cwd,
    stdin = true,
    stdout = function(_, data) if data then vim.schedule(function() self:read(data) end) end end,
    stderr = function(_, data) self.stderr = (self.stderr .. (data or "")):sub(-4096) end,
  }, function(done) vim.schedule(function() self:exited(done) end) end)
  if not started then return nil, ("%s cannot be started: %s"):format(command[1], tostring(process):match("[^:]*$")) end
  self.process = process
  return self
end

---@private
function Rpc:read(data)
  local from = 1
  for stop in data:gmatch("()\n") do
    local line = self.rest .. data:sub(from, stop - 1)
    self.rest, from = "", stop + 1
    local whole, message = pcall(vim.json.decode, line, { luanil = { object = true, array = true } })
    if whole then self:take(message) end
  end
  self.rest = self.rest .. data:sub(from)
end

---@private
function Rpc:take(message)
  local params = message.params or {}
  if message.method == "$/message" then
    local request = self.waiting[params.id]
    if request and request.on_message then request.on_message(params.message) end
  elseif message.method == "$/state" then
    self.on_state(params.id, params.state, params.epoch)
  elseif message.method == "$/error" then
    vim.notify("toold: " .. params.error.message, vim.log.levels.WARN)
  elseif message.id then
    local request = self.waiting[message.id]
    self.waiting[message.id] = nil
    if request then request.on_reply(message.result, message.error) end
  end
end

---@private
function Rpc:exited(done)
  self.process = nil
  local text = vim.trim(self.stderr)
  if text == "" then text = ("toold stdio has ended with %d"):format(done.code) end
  local waiting = self.waiting
  self.waiting = {}
  for _, request in pairs(waiting) do request.on_reply(nil, { code = 14, message = text, data = { status = "UNAVAILABLE" } }) end
  self.on_exit(text)
end

---@private
function Rpc:write(message)
  message.jsonrpc = "2.0"
  if self.process then self.process:write(vim.json.encode(message) .. "\n") end
end

--- Sends a request.
---@param method string such as "SessionService/ListSessions"
---@param params table the message; an empty one is vim.empty_dict()
---@param on_reply fun(result: table?, failure: toold.Failure?)
---@param on_message fun(message: table)?
---@return integer id
function Rpc:request(method, params, on_reply, on_message)
  self.last = self.last + 1
  local id = self.last
  if not self.process then
    on_reply(nil, { code = 14, message = "toold stdio does not run", data = { status = "UNAVAILABLE" } })
    return id
  end
  self.waiting[id] = { on_reply = on_reply, on_message = on_message }
  self:write({ id = id, method = method, params = params })
  return id
end

--- Sends the next message of an Execute stream.
---@param id integer of its request
---@param message table
function Rpc:send(id, message) self:write({ method = "$/send", params = { id = id, message = message } }) end

--- Says that no more messages come on an Execute stream. It is answered when its calls have ended.
---@param id integer
function Rpc:finish(id) self:write({ method = "$/end", params = { id = id } }) end

--- Ends the process: what is under way is written to its end first.
function Rpc:close()
  if self.process then self.process:write(nil) end
end

return M
