-- Questions: one at a time in a float that never takes the focus by itself, since what is typed then would be an answer.
local M = {}

---@class toold.Open
---@field session toold.Session
---@field question table

---@type toold.Open[]
local open = {}
local buf, win

local actions = {
  a = { "allow", "DECISION_ALLOW" },
  d = { "deny", "DECISION_DENY" },
  m = { "deny with a message", "DECISION_DENY" },
}

local function hide()
  if win and vim.api.nvim_win_is_valid(win) then vim.api.nvim_win_close(win, true) end
  if buf and vim.api.nvim_buf_is_valid(buf) then vim.api.nvim_buf_delete(buf, { force = true }) end
  buf, win = nil, nil
end

local function add(lines, text, prefix)
  for _, line in ipairs(vim.split(text or "", "\n")) do lines[#lines + 1] = (prefix or "") .. line end
end

--- What the float says: the reason, what the call would do, the rules that would settle it, the diff.
---@return string[] lines
---@return integer diff the line where the diff begins, from 1
local function words(question)
  local lines = {}
  add(lines, question.reason)
  for _, effect in ipairs(question.effects or {}) do add(lines, effect, "  ") end
  for i, rule in ipairs(question.suggestions or {}) do
    lines[#lines + 1] = ("%d  always %s %s"):format(i, rule.list, rule.rule)
  end
  local from = #lines + 2
  if (question.diff or "") ~= "" then
    lines[#lines + 1] = ""
    add(lines, question.diff)
  end
  return lines, from
end

local function answer(entry, decision, more)
  for i, other in ipairs(open) do
    if other == entry then table.remove(open, i) end
  end
  entry.session:send({ answer = vim.tbl_extend("force", {
    question_id = entry.question.question_id, input_digest = entry.question.input_digest, decision = decision,
  }, more or {}) })
  M.show()
end

--- Where a rule is kept.
local scopes = { { "this session", "SCOPE_SESSION" }, { "this project, for me", "SCOPE_LOCAL" }, { "this project, for everybody", "SCOPE_PROJECT" }, { "all my projects", "SCOPE_USER" } }

local function remember(entry, rule)
  vim.ui.select(scopes, { prompt = ("Keep %s for"):format(rule.rule), format_item = function(s) return s[1] end }, function(scope)
    if scope then
      answer(entry, rule.list == "deny" and "DECISION_DENY" or "DECISION_ALLOW", { remember = { { rule = rule.rule, list = rule.list, scope = scope[2] } } })
    end
  end)
end

--- Asks for the fields of a form, one after the other, and sends them.
local function fill(entry, schema)
  local names, values = vim.tbl_keys(schema.properties or {}), vim.empty_dict()
  table.sort(names)
  local function next_field(i)
    local name = names[i]
    if not name then return answer(entry, "DECISION_ALLOW", { updated_input_json = vim.json.encode(values) }) end
    local field = schema.properties[name]
    local prompt = field.title or field.description or name
    local function take(value)
      if value == nil then return end -- given up: the question stays
      values[name] = value
      next_field(i + 1)
    end
    if field.type == "boolean" then
      vim.ui.select({ "yes", "no" }, { prompt = prompt }, function(choice) if choice then take(choice == "yes") end end)
    elseif field.enum then
      vim.ui.select(field.enum, { prompt = prompt }, take)
    else
      vim.ui.input({ prompt = prompt .. ": ", default = field.default and tostring(field.default) or nil }, function(text)
        if text == nil then return end
        if field.type == "number" or field.type == "integer" then return take(tonumber(text)) end
        take(text)
      end)
    end
  end
  next_field(1)
end

local function allow(entry)
  local form = entry.question.form_schema_json or ""
  local schema = form ~= "" and vim.json.decode(form) or nil
  if schema and next(schema.properties or {}) then return fill(entry, schema) end
  answer(entry, "DECISION_ALLOW", schema and { updated_input_json = "{}" } or nil)
end

local function keys(entry)
  local function map(key, act, text) vim.keymap.set("n", key, act, { buffer = buf, nowait = true, desc = "toold: " .. text }) end
  map("a", function() allow(entry) end, actions.a[1])
  map("d", function() answer(entry, "DECISION_DENY") end, actions.d[1])
  map("m", function()
    vim.ui.input({ prompt = "To the model: " }, function(text)
      if text then answer(entry, "DECISION_DENY", { message = text }) end
    end)
  end, actions.m[1])
  map("q", function() vim.cmd.wincmd("p") end, "leave it open")
  for i, rule in ipairs(entry.question.suggestions or {}) do
    if i < 10 then map(tostring(i), function() remember(entry, rule) end, "keep a rule") end
  end
end

--- Shows the oldest open question, or none.
function M.show()
  hide()
  local entry = open[1]
  if not entry then return end
  local question = entry.question
  local lines, diff = words(question)
  buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable, vim.bo[buf].filetype = "wipe", false, "toold"
  local space = vim.api.nvim_create_namespace("toold")
  local groups = { ["+"] = "Added", ["-"] = "Removed", ["@"] = "Special" }
  for i = diff, #lines do
    local name = groups[lines[i]:sub(1, 1)]
    if name then vim.api.nvim_buf_set_extmark(buf, space, i - 1, 0, { end_row = i, hl_group = name, hl_eol = true }) end
  end
  keys(entry)
  local longest = 0
  for _, line in ipairs(lines) do longest = math.max(longest, vim.fn.strdisplaywidth(line)) end
  local width = math.max(math.min(math.max(longest + 1, 50), 100, vim.o.columns - 4), 20)
  local height = math.max(1, math.min(#lines, math.floor(vim.o.lines * 0.6)))
  win = vim.api.nvim_open_win(buf, false, {
    relative = "editor", anchor = "NE", row = 1, col = vim.o.columns - 1, width = width,
    height = height, style = "minimal", border = "rounded",
    title = (" %s%s "):format(vim.fn.strcharpart(question.title or question.tool_name, 0, width - 12), #open > 1 and (" (1 of %d)"):format(#open) or ""),
    footer = " a allow · d deny · m deny, say why · q later ",
  })
  vim.wo[win].wrap = true
  if #lines > height then vim.wo[win].winbar = (question.reason or ""):gsub("%%", "%%%%"):gsub("\n", " ") end -- stays while the diff is scrolled
end

--- Puts the cursor into the float, so that its keys answer. Says so if there is no question.
function M.focus()
  if not open[1] then return vim.notify("toold: no question is open") end
  if not (win and vim.api.nvim_win_is_valid(win)) then M.show() end
  vim.api.nvim_set_current_win(win)
end

--- Takes a question in. One that is asked again takes the place of the first.
---@param session toold.Session
---@param question table
function M.ask(session, question)
  for _, entry in ipairs(open) do
    if entry.question.question_id == question.question_id then
      local same = entry.question.input_digest == question.input_digest
      entry.session, entry.question = session, question
      if not same and entry == open[1] then M.show() end
      return
    end
  end
  open[#open + 1] = { session = session, question = question }
  if #open == 1 then
    M.show()
    vim.notify(("toold asks: %s  (:Toold answer)"):format(question.title or question.tool_name))
  end
end

--- Takes a question back that no longer matters.
---@param id string
function M.withdraw(id)
  for i, entry in ipairs(open) do
    if entry.question.question_id == id then
      table.remove(open, i)
      if i == 1 then M.show() end
      return
    end
  end
end

--- Takes all of them back.
function M.withdraw_all()
  open = {}
  hide()
end

--- How many are open.
---@return integer
function M.count() return #open end

return M
