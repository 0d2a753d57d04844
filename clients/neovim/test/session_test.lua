-- Questions, tools of the editor, cancelling, and a daemon that is gone.
local tests = {}

--- What the float says, its title included; nil while there is none.
local function float()
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    local config = vim.api.nvim_win_get_config(win)
    if config.relative ~= "" then
      local title = table.concat(vim.tbl_map(function(part) return part[1] end, config.title or {}))
      return title .. "\n" .. table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, true), "\n")
    end
  end
end

local function press(key)
  vim.cmd("Toold answer")
  vim.api.nvim_feedkeys(key, "x", false)
end

function tests.a_question_is_answered_in_the_float()
  local dir = T.folder()
  T.write(dir .. "/a.txt", "one\n")
  local session = T.attach({ main = true, mode = "PERMISSION_MODE_DEFAULT" })
  T.call(session, "Read", { file_path = dir .. "/a.txt" })
  local window = vim.api.nvim_get_current_win()
  local result
  session:call("Edit", { file_path = dir .. "/a.txt", old_string = "one", new_string = "two" }, function(r) result = r end)
  local text = T.wait("the question", float)
  T.equal(vim.api.nvim_get_current_win(), window) -- it does not take the focus
  T.contains(text, "a.txt")
  T.contains(text, "-one\n+two")
  press("a")
  T.wait("the result", function() return result end)
  T.equal(result.outcome, "OUTCOME_OK")
  T.equal(T.read(dir .. "/a.txt"), "two\n")
  T.equal(float(), nil)
end

function tests.the_reason_stays_beside_a_long_diff()
  local lines = {}
  for i = 1, 200 do lines[i] = "+line " .. i end
  require("toold.questions").ask({ send = function() end }, { question_id = "q", input_digest = "d", title = "Write(x)", reason = "100% new.", diff = table.concat(lines, "\n") })
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(win).relative ~= "" then
      T.equal(vim.wo[win].winbar, "100%% new.")
      T.equal(vim.api.nvim_win_get_height(win) < vim.o.lines, true)
      return require("toold.questions").withdraw_all()
    end
  end
  error("no float")
end

function tests.a_no_and_its_reason_reach_the_model()
  T.folder()
  local session = T.attach({ main = true, mode = "PERMISSION_MODE_DEFAULT" })
  local result
  session:call("Bash", { command = "touch made" }, function(r) result = r end)
  T.wait("the question", float)
  local input = vim.ui.input
  vim.ui.input = function(_, take) take("not today") end
  press("m")
  vim.ui.input = input
  T.wait("the result", function() return result end)
  T.equal(result.outcome, "OUTCOME_DENIED")
  T.contains(T.text(result), "not today")
end

function tests.a_rule_is_kept_for_the_session()
  T.folder()
  local session = T.attach({ main = true, mode = "PERMISSION_MODE_DEFAULT" })
  local result
  session:call("Bash", { command = "touch made" }, function(r) result = r end)
  T.contains(T.wait("the question", float), "1  always allow Bash(touch made)")
  local choose = vim.ui.select
  vim.ui.select = function(items, _, take) take(items[1]) end
  press("1")
  vim.ui.select = choose
  T.wait("the result", function() return result end)
  T.equal(result.outcome, "OUTCOME_OK")
  T.equal(T.call(session, "Bash", { command = "touch made" }).outcome, "OUTCOME_OK") -- not asked again
end

function tests.a_form_is_filled_in()
  local asked = { question_id = "q", input_digest = "d", title = "Name", tool_name = "x",
    form_schema_json = vim.json.encode({ properties = { name = { type = "string" }, size = { type = "integer" }, sure = { type = "boolean" } } }) }
  local sent
  local questions = require("toold.questions")
  questions.ask({ send = function(_, message) sent = message end }, asked)
  local input, choose = vim.ui.input, vim.ui.select
  local typed = { "a name", "3" }
  vim.ui.input = function(_, take) take(table.remove(typed, 1)) end
  vim.ui.select = function(_, _, take) take("yes") end
  press("a")
  vim.ui.input, vim.ui.select = input, choose
  T.equal(sent.answer.decision, "DECISION_ALLOW")
  T.equal(vim.json.decode(sent.answer.updated_input_json), { name = "a name", size = 3, sure = true })
end

function tests.diagnostics_are_a_tool()
  local dir = T.folder()
  T.write(dir .. "/a.lua", "x\n")
  vim.cmd.edit(dir .. "/a.lua")
  vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, { { lnum = 0, col = 0, message = "unused", severity = 2, source = "lint" } })
  local session = T.attach()
  T.contains(T.text(T.call(session, "getDiagnostics", {})), "a.lua:1:1: warning: unused [lint]")
  T.contains(T.text(T.call(session, "getDiagnostics", { path = dir .. "/none.lua" })), "does not have")
end

function tests.the_selection_is_a_tool()
  local dir = T.folder()
  T.write(dir .. "/a.txt", "one\ntwo\nthree\n")
  vim.cmd.edit(dir .. "/a.txt")
  local session = T.attach()
  T.contains(T.text(T.call(session, "getSelection", {})), "Nothing is selected")
  vim.cmd("normal! ggVj\27")
  T.contains(T.text(T.call(session, "getSelection", {})), "a.txt:1-2\none\ntwo")
end

function tests.a_diff_is_accepted_or_rejected()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "one\n")
  local session = T.attach()
  for command, said in pairs({ write = "accepted this text, which is not written yet:\none\ntwo", ["close!"] = "rejected" }) do
    local result
    session:call("openDiff", { path = path, content = "one\ntwo\n" }, function(r) result = r end)
    T.wait("the proposal", function() return vim.fn.bufname():find("proposed", 1, true) end)
    vim.cmd(command)
    T.wait("the result", function() return result end)
    T.contains(T.text(result), said)
    T.wait("one tab", function() return #vim.api.nvim_list_tabpages() == 1 end)
  end
  T.equal(T.read(path), "one\n")
end

function tests.a_call_is_cancelled()
  T.folder()
  local session = T.attach({ main = true, mode = "PERMISSION_MODE_BYPASS_PERMISSIONS" })
  local result
  session:call("Bash", { command = "sleep 600" }, function(r) result = r end)
  T.wait("a running call", function()
    for _, call in pairs(session.calls) do if call.running then return true end end
  end)
  T.contains(require("toold").status(), "1 running")
  vim.cmd("Toold cancel")
  T.wait("the result", function() return result end)
  T.equal(result.outcome, "OUTCOME_CANCELLED")
end

function tests.a_model_message_gives_the_items_to_append()
  local dir = T.folder()
  T.write(dir .. "/a.txt", "one\n")
  local session = T.attach()
  local items
  session:run({ id = "msg", type = "message", role = "assistant", content = {
    { type = "text", text = "I look." },
    { type = "tool_use", id = "t1", name = "Read", input = { file_path = dir .. "/a.txt" } },
  } }, function(got) items = got end)
  T.wait("the items", function() return items end)
  T.equal(#items, 1)
  T.equal(items[1].tool_use_id, "t1")
  T.contains(vim.json.encode(items), "one")
end

function tests.an_editor_stands_beside_an_agent()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "saved\n")
  vim.cmd.edit(path)
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { "unsaved" })
  local session = T.attach({ session = "beside" })
  local done
  vim.system({ "toold", "call", "--session", "beside", "Read", vim.json.encode({ file_path = path }) }, { text = true }, function(d) done = d end)
  T.wait("the agent's result", function() return done end)
  T.contains(done.stdout .. done.stderr, "unsaved")
  T.equal(session.id, "beside")
end

function tests.a_daemon_that_is_gone_is_started_again()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "saved\n")
  vim.cmd.edit(path)
  local session = T.attach({ session = "again", main = true, mode = "PERMISSION_MODE_ACCEPT_EDITS" })
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { "unsaved" })
  T.call(session, "Read", { file_path = path })
  local status = vim.json.decode(vim.system({ "toold", "status", "--json" }, { text = true }):wait().stdout)
  vim.uv.kill(status.pid, "sigkill")
  local attached = 0
  local real = session.take
  session.take = function(self, event)
    if event.attached then attached = attached + 1 end
    real(self, event)
  end
  T.wait("the session, attached again", function() return attached > 0 end)
  T.contains(T.text(T.call(session, "Read", { file_path = path })), "unsaved")
end

function tests.a_program_that_is_missing_is_named()
  local toold = require("toold")
  local missing = T.folder() .. "/absent/toold"
  toold.config.command = { missing }
  local why
  toold.attach({}, function(_, w) why = w end)
  toold.config.command = { "toold" }
  T.wait("an error", function() return why end)
  T.contains(why, missing)
  T.equal(toold.session, nil)
end

function tests.commands_show_what_was_done()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "one\n")
  local session = T.attach({ session = "shown", main = true, mode = "PERMISSION_MODE_ACCEPT_EDITS" })
  T.call(session, "Read", { file_path = path })
  T.call(session, "Edit", { file_path = path, old_string = "one", new_string = "two" })
  vim.cmd("Toold diff")
  T.wait("the diff", function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n"):find("-one\n+two", 1, true) end)
  vim.cmd.close()
  vim.cmd("Toold log")
  T.wait("the log", function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n"):find("Edit", 1, true) end)
  vim.cmd.close()
  local choose = vim.ui.select
  vim.ui.select = function(items, _, take) take(items[1]) end
  vim.cmd("Toold undo")
  T.wait("the file put back", function() return T.read(path) == "one\n" end)
  vim.ui.select = choose
  vim.cmd("Toold tasks")
  T.wait("a word", function() return vim.tbl_contains(T.said, "toold: no background tasks") end)
  vim.cmd("Toold nonsense")
  T.contains(T.said[#T.said], "attach")
  T.equal(require("toold.command").complete("d", "Toold d"), { "detach", "diff" })
  vim.cmd("checkhealth toold")
  T.wait("the health", function() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n"):find("attached to shown", 1, true) end)
end

return tests
