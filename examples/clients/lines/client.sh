#!/bin/sh
# Asks for one call with jq and a pipe, and prints what the model would read.
#
#   ./client.sh Bash '{"command":"go version"}'
set -eu
jq -cn --arg name "$1" --arg input "$2" '{jsonrpc: "2.0", id: 1, method: "ToolService/RunTool", params: {name: $name, input_json: $input}}' |
  toold stdio |
  jq -j 'if .error then .error.message else .params.message.event.tool_result.content[]?.text end'
