-- Defines :Toold. Nothing else is loaded before it is used.
if vim.g.loaded_toold then return end
vim.g.loaded_toold = true

vim.api.nvim_create_user_command("Toold", function(command) require("toold.command").run(command.fargs) end, {
  nargs = "*",
  complete = function(lead, line) return require("toold.command").complete(lead, line) end,
  desc = "toold: attach, answer, log, diff, undo, tasks, cancel",
})
