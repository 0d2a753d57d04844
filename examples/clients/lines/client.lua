-- Runs a command through toold and prints what a model would read of it. Lua 5.4 alone: toold stdio speaks JSON, a line a message,
-- and writes it without spaces, so that patterns find what is looked for.
--
--   lua client.lua 'go test ./...'
local pipe = os.tmpname()
os.remove(pipe)
assert(os.execute("mkfifo -m 600 " .. pipe))
local to = assert(io.popen("toold stdio > " .. pipe, "w"))
to:setvbuf("line")
local from = assert(io.open(pipe, "r"))
os.remove(pipe)

local function quote(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function unquote(text)
  local names = { n = "\n", t = "\t", r = "\r", b = "\b", f = "\f" }
  return (text:gsub("\\(.)(%x?%x?%x?%x?)", function(c, rest)
    return c == "u" and utf8.char(tonumber(rest, 16)) or (names[c] or c) .. rest
  end))
end

local input = '{"command":' .. quote(arg[1]) .. "}"
to:write('{"jsonrpc":"2.0","id":1,"method":"ToolService/Execute","params":{"attach":{"roots":[' .. quote(os.getenv("PWD")) .. "],",
  '"options":{"permission_mode":"PERMISSION_MODE_BYPASS_PERMISSIONS"}}}}\n')
to:write('{"jsonrpc":"2.0","method":"$/send","params":{"id":1,"message":{"tool_use":{"id":"a","name":"Bash","input_json":' .. quote(input) .. "}}}}\n")

for line in from:lines() do
  local outcome, text = line:match('"tool_result":{"tool_use_id":"a".-"outcome":"OUTCOME_(%u+)","content":%[{"text":"(.-[^\\])"')
  if outcome then print(unquote(text) .. "ended as " .. outcome) to:write('{"jsonrpc":"2.0","method":"$/end","params":{"id":1}}\n') end
  if line:match('^{"jsonrpc":"2.0","id":1,') then break end
end
to:close()
