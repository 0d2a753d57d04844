-- Unsaved texts, both ways.
local tests = {}

local function edit(session, path, old, new)
  local result = T.call(session, "Edit", { file_path = path, old_string = old, new_string = new })
  if result.is_error then error(vim.inspect(result)) end
end

function tests.unsaved_text_is_read_and_edited()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "one\ntwo\nthree\n")
  vim.cmd("silent edit " .. path)
  local session = T.attach()
  vim.api.nvim_buf_set_lines(0, 1, 2, true, { "zwei ü", "und" })
  local read = T.call(session, "Read", { file_path = path })
  T.contains(T.text(read), "zwei ü")
  edit(session, path, "zwei ü\nund", "2\n2½")
  T.equal(vim.api.nvim_buf_get_lines(0, 0, -1, true), { "one", "2", "2½", "three" })
  T.equal(vim.bo.modified, true)
  T.equal(T.read(path), "one\ntwo\nthree\n")
  vim.cmd("silent undo")
  T.equal(vim.api.nvim_buf_get_lines(0, 0, -1, true), { "one", "zwei ü", "und", "three" })
end

function tests.first_and_last_lines_are_edited()
  for _, c in ipairs({
    { "one\ntwo\n", "two\n", "2\n3\n", { "one", "2", "3" }, "\n" },
    { "one\ntwo\n", "one\n", "", { "two" }, "\n" },
    { "one\ntwo\n", "\ntwo\n", "\n", { "one" }, "\n" },
    { "one\ntwo", "two", "2", { "one", "2" }, "" },
    { "one\ntwo", "two", "2\n", { "one", "2" }, "\n" },
    { "one\ntwo\n", "two\n", "two", { "one", "two" }, "" },
    { "one\n", "one\n", "", {}, "" },
    { "one\r\ntwo\r\n", "two", "2", { "one", "2" }, "\r\n" },
    { "\239\187\191one\ntwo\n", "one", "1", { "1", "two" }, "\n" },
  }) do
    local dir = T.folder()
    local path = dir .. "/a.txt"
    T.write(path, c[1])
    vim.cmd("silent edit " .. path)
    vim.bo.fixendofline = false
    local session = T.attach()
    vim.cmd("normal! ix")
    vim.cmd("normal! x") -- as before, but changed
    T.equal(vim.bo.modified, true)
    T.call(session, "Read", { file_path = path })
    edit(session, path, c[2], c[3])
    T.equal(vim.api.nvim_buf_get_lines(0, 0, -1, true), #c[4] > 0 and c[4] or { "" })
    vim.cmd("silent write")
    local bytes = T.read(path)
    local ends = c[5] == "" and "\n" or c[5]
    T.equal(bytes, (c[1]:sub(1, 3) == "\239\187\191" and c[1]:sub(1, 3) or "") .. table.concat(c[4], ends) .. c[5])
    require("toold").detach()
    vim.cmd.bwipeout({ bang = true })
  end
end

function tests.programs_see_what_was_saved_for_them()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "old\n")
  vim.cmd("silent edit " .. path)
  local session = T.attach({ main = true, mode = "PERMISSION_MODE_BYPASS_PERMISSIONS" })
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { "new" })
  local result = T.call(session, "Bash", { command = "cat a.txt; echo more >> a.txt" })
  T.contains(T.text(result), "new")
  T.equal(vim.bo.modified, false)
  T.wait("the text that the command has written", function() return #vim.api.nvim_buf_get_lines(0, 0, -1, true) == 2 end)
end

function tests.unsaved_text_can_stay_unsaved()
  local toold = require("toold")
  toold.config.save = false
  local dir = T.folder()
  T.write(dir .. "/a.txt", "old\n")
  vim.cmd("silent edit " .. dir .. "/a.txt")
  local session = T.attach({ main = true, mode = "PERMISSION_MODE_BYPASS_PERMISSIONS" })
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { "new" })
  local result = T.call(session, "Bash", { command = "cat a.txt" })
  toold.config.save = true
  T.contains(T.text(result), "old")
  T.equal(vim.bo.modified, true)
end

function tests.a_saved_file_is_edited_on_the_disk_and_loaded_again()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "one\n")
  vim.cmd("silent edit " .. path)
  local session = T.attach()
  T.call(session, "Read", { file_path = path })
  edit(session, path, "one", "eins")
  T.equal(T.read(path), "eins\n")
  T.wait("the new text in the editor", function() return vim.api.nvim_buf_get_lines(0, 0, 1, true)[1] == "eins" end)
end

function tests.an_edit_of_a_text_that_has_changed_meanwhile_is_refused()
  local dir = T.folder()
  local path = dir .. "/a.txt"
  T.write(path, "one\n")
  vim.cmd("silent edit " .. path)
  local session = T.attach()
  vim.api.nvim_buf_set_lines(0, 0, -1, true, { "two" })
  T.call(session, "Read", { file_path = path })
  local buffers = require("toold.buffers")
  local real = buffers.edit
  buffers.edit = function(...)
    vim.api.nvim_buf_set_lines(0, 0, -1, true, { "two and a half" })
    real(...)
  end
  local result = T.call(session, "Edit", { file_path = path, old_string = "two", new_string = "zwei" })
  buffers.edit = real
  T.equal(result.error.code, "stale_file")
  T.equal(vim.api.nvim_buf_get_lines(0, 0, -1, true), { "two and a half" })
end

return tests
