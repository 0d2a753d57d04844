-- Runs the tests of this folder in the Neovim that it is given to: nvim -l test/run.lua [FILTER]. Needs toold on PATH, with
-- a place of its own: HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR, XDG_CONFIG_HOME.
local here = vim.fs.dirname(vim.fs.dirname(vim.fs.abspath and vim.fs.abspath(arg[0]) or vim.fn.fnamemodify(arg[0], ":p")))
vim.opt.runtimepath:prepend(here)
vim.cmd.runtime("plugin/toold.lua")
local failed, ran = 0, 0

--- What tests share.
T = { said = {} }
vim.notify = function(text) T.said[#T.said + 1] = text end

--- Waits until something holds, and returns it.
function T.wait(what, holds, seconds)
  local value
  vim.wait((seconds or 20) * 1000, function() value = holds() return value end, 5)
  if not value then error(("not seen: %s\nsaid: %s"):format(what, table.concat(T.said, "\n      ")), 2) end
  return value
end

function T.equal(got, wanted)
  if not vim.deep_equal(got, wanted) then error(("got %s\nwanted %s"):format(vim.inspect(got), vim.inspect(wanted)), 2) end
end

function T.contains(text, part)
  if not text:find(part, 1, true) then error(("%q is not in\n%s"):format(part, text), 2) end
end

--- A folder of the test's own, which is the working directory.
function T.folder()
  local dir = vim.uv.fs_realpath(vim.fn.tempname():match("(.*)/")) .. "/" .. vim.fn.sha256(tostring(vim.uv.hrtime())):sub(1, 8)
  vim.fn.mkdir(dir, "p")
  vim.cmd.cd(dir)
  return dir
end

function T.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

function T.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("a")
  file:close()
  return text
end

--- Attaches, and waits for it.
function T.attach(options)
  local done
  require("toold").attach(options or { main = true, mode = "PERMISSION_MODE_ACCEPT_EDITS" }, function(session, why) done = session or error(why) end)
  return T.wait("an attached session", function() return done end)
end

--- Runs a call to its end.
function T.call(session, name, input)
  local result
  session:call(name, input, function(r) result = r end)
  return T.wait("the result of " .. name, function() return result end)
end

--- The text of a result.
function T.text(result)
  return table.concat(vim.tbl_map(function(block) return block.text or "" end, result.content or {}))
end

for _, file in ipairs(vim.fn.sort(vim.fn.glob(here .. "/test/*_test.lua", false, true))) do
  for name, test in vim.spairs(dofile(file)) do
    if name:find(arg[1] or "", 1, true) then
      ran = ran + 1
      T.said = {}
      local done, why = xpcall(test, debug.traceback)
      pcall(require("toold").detach)
      vim.cmd("silent! %bwipeout!")
      vim.cmd("silent! tabonly! | silent! only!")
      io.write((done and "ok   " or "FAIL ") .. name .. (done and "" or "\n     " .. tostring(why):gsub("\n", "\n     ")) .. "\n")
      failed = failed + (done and 0 or 1)
    end
  end
end
io.write(("%d passed, %d failed\n"):format(ran - failed, failed))
os.exit(failed == 0 and ran > 0 and 0 or 1)
